"""Hold a host, in any language, against scenarios of an agent: what ``claude-wire conform`` does."""
