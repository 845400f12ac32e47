"""The control protocol, for hosts and agents: send requests, and answer the requests of the other side."""
