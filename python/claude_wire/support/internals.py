"""Check that another package still has the private names that we use. If not, the error names the missing ones."""

from __future__ import annotations


def require_parts(package: str, tested: str, owner: object, *names: str) -> None:
    """Check that a class or object from another package has these attributes.

    Args:
        package: the distribution's name.
        tested: the newest version of the distribution that we tested.
        owner: the class or object.
        names: the attributes' names.

    Raises:
        ImportError: an attribute is missing.
    """
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        from importlib.metadata import version

        of = owner if isinstance(owner, type) else type(owner)
        raise ImportError(
            f"claude_wire uses internals of {package}, which was tested up to {package} {tested}; in {package} "
            f"{version(package)}, {of.__name__} has no {', '.join(missing)}",
            name=package,
        )
