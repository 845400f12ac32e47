"""The commands ``claude-wire supervisor …``: start a supervisor, and use its sessions from a shell."""
