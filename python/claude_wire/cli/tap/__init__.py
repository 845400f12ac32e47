"""A program in place of the CLI: it runs the CLI, passes on what goes over its streams, and writes it down."""
