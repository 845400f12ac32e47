"""Code that several subcommands use: sources and folders that the user names, signals, errors, progress."""
