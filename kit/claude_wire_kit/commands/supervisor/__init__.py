"""``claude-wire supervisor``: start a supervisor, and work with its sessions from a shell."""
