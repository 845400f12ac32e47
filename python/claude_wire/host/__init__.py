"""Sessions that outlive their clients: one supervisor for each user and machine owns the CLIs."""
