"""The tap: a program in place of the CLI that runs the CLI, passes all bytes on, and can record them."""
