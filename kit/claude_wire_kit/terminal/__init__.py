"""A session or a recording at a terminal. ``claude-wire run`` starts a session, ``claude-wire attach`` joins one, and
``claude-wire view`` shows a recording.
"""
