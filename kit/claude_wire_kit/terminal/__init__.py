"""Show sessions and recordings in the terminal: ``claude-wire run``, ``supervisor attach``, ``view`` and others."""
