"""A check of the private parts of other packages that we use, so that a new version fails with a clear error."""

from __future__ import annotations


def require_parts(package: str, tested: str, owner: object, *names: str) -> None:
    """Check that a class or an object of another package has these attributes.

    Args:
        package: the name of the distribution.
        tested: the newest version of it that we have tested.
        owner: the class or the object.
        names: the attributes.

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
