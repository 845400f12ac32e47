"""What recordings contain: kinds, unknown fields, sums, matches of a pattern, and how fast they decode."""
