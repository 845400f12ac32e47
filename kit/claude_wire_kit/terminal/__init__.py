"""Show sessions and recordings at a terminal: ``claude-wire run``, ``supervisor attach``, ``view`` and others."""
