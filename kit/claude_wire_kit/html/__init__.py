"""A session as one static HTML page."""
