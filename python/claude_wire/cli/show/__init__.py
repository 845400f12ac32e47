"""Messages as people see them on a terminal."""
