"""The pip command that installs a missing optional package."""

from __future__ import annotations

import re

# Matches the extra in a requirement's marker: "tomli>=2; python_version < '3.11' and extra == 'serve'".
_EXTRA = re.compile(r"""\s*(?:and\s+)?extra\s*==\s*['"]([^'"]+)['"]""")


def install_extra(*extras: str, distribution: str = "claude-wire", folder: str = ".") -> str:
    """Return the command that installs what the extras require: ``pip install "mcp>=1.23"``.

    The command names the packages instead of ``claude-wire[mcp]``, so it also works if claude-wire was installed from a
    clone. The requirements are read from the installed package's metadata.

    Args:
        extras: the names of the extras.
        distribution: the package that has the extras.
        folder: the package's folder in a clone.
    """
    from importlib import metadata  # this import takes 8 ms, so import it only if a package is missing

    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:  # the package was imported from a folder but is not installed
        requirements = []
    wanted: dict[str, None] = {}
    for requirement in requirements:
        found = _EXTRA.search(requirement)
        if found is not None and found.group(1) in extras:
            wanted[_EXTRA.sub("", requirement).rstrip(" ;")] = None
    if not wanted:
        return f"pip install '{folder}[{','.join(extras)}]' in a clone of claude_wire"
    return "pip install " + " ".join(f'"{package}"' for package in wanted)
