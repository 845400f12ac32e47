"""User and assistant messages, and the results of turns."""
