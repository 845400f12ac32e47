"""Shared by several subcommands: files and folders that the user names, signals, and the failure of a command."""
