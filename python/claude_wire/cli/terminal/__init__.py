"""A session with the CLI at the terminal."""
