"""Check a host, written in any language, in the scenarios of ``claude-wire conform``: each has an agent of its own."""
