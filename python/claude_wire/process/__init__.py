"""A child process: its arguments, its pipes, its exit and end."""
