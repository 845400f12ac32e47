"""Advice for a missing optional package: which extra requires it, and the pip command that installs it."""

from __future__ import annotations

import re
import sys

# Matches the extra in a requirement's marker: "tomli>=2; python_version < '3.11' and extra == 'serve'".
_EXTRA = re.compile(r"""\s*(?:and\s+)?extra\s*==\s*['"]([^'"]+)['"]""")

# Matches the marker of a requirement for older Pythons, without its extra: "; (python_version < '3.11')".
_OLDER_PYTHON = re.compile(r"""\s*;\s*\(?\s*python_version\s*<\s*['"]3\.(\d+)['"]\s*\)?$""")


def install_extra(extra: str, *, distribution: str = "claude-wire", folder: str = ".") -> str:
    """Return advice: ``install the extra 'mcp' of claude-wire, or: pip install "mcp>=1.23"``.

    The command lists the packages that the extra requires, so it also works if claude-wire was installed from a clone
    and is on no index. The requirements are read from the installed package's metadata. Requirements for older Pythons
    are left out.

    Args:
        extra: the name of the extra.
        distribution: the package that has the extra.
        folder: the package's folder in a clone.
    """
    from importlib import metadata  # this import takes 8 ms, so import it only if a package is missing

    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:  # the package was imported from a folder but is not installed
        requirements = []
    wanted: list[str] = []
    for requirement in requirements:
        found = _EXTRA.search(requirement)
        if found is None or found.group(1) != extra:
            continue
        package = _EXTRA.sub("", requirement).rstrip(" ;")
        older = _OLDER_PYTHON.search(package)
        if older is None:
            wanted.append(f'"{package}"')
        elif sys.version_info < (3, int(older.group(1))):
            wanted.append(f'"{package[: older.start()]}"')
    if not wanted:
        return f"pip install '{folder}[{extra}]' in a clone of claude_wire"
    return f"install the extra {extra!r} of {distribution}, or: pip install {' '.join(wanted)}"
