"""The lines of a transcript as msgspec Structs: one class for each type, and for each kind of attachment."""
