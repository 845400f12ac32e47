"""``claude-wire supervisor``: a supervisor of sessions, and what a person does with its sessions from a shell."""
