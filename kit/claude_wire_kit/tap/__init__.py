"""The tap. A host starts it instead of the CLI. It runs the CLI, passes all bytes on, and can record them."""
