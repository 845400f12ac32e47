"""A session as one static page."""
