"""Check a host, in any language, in the scenarios of ``claude-wire conform``. Each scenario has its own agent."""
