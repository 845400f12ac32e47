"""What several subcommands share: the files and the folder that a user names, signals, and how a command fails."""
