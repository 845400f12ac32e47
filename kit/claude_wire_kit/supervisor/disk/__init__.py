"""The supervisor's files: its state folder, and for each session a journal and a record."""
