"""A session whose CLI belongs to a supervisor."""
