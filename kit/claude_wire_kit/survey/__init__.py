"""Examine recordings: count kinds, find unknown fields, add up usage, search text, and measure decoding speed."""
