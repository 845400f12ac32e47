"""The control protocol for hosts and agents: send requests, and answer the other side's requests."""
