"""The service, from the command line."""
