"""The inputs and outputs of hooks."""
