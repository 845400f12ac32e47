"""Write a session as one static HTML page."""
