"""The control protocol: requests of each side, and their answers."""
