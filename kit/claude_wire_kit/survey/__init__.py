"""What recordings hold: their kinds and unknown fields, their sums, what was said in them, and how fast they decode."""
