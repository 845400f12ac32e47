"""Sessions of a Ray cluster: a supervisor on each node, and clients anywhere."""
