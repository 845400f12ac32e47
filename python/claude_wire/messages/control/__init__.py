"""Control requests of both sides, and their answers."""
