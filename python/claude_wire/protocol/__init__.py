"""The host's side of the protocol as state machines, without input and output."""
