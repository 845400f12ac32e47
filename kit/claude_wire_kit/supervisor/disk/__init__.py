"""What a supervisor keeps on disk: its folder, and a journal and a record for each session."""
