"""Adapters for other packages, one module each. Nothing here is imported by the rest of the library."""
