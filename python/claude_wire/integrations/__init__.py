"""Adapters for other packages, one module each. The rest of the library does not import them."""
