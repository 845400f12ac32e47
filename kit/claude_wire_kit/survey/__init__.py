"""Examine recordings: count kinds, find unknown fields, add up usage, search text, and measure the decoding speed."""
