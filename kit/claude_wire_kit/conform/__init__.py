"""Check a host, written in any language, in the scenarios of ``claude-wire conform``. Each has its own agent."""
