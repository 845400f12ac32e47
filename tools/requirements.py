"""Print the requirements that pyproject.toml names, for pip: ``requirements.py build base dev …``.

``build`` is what building needs, ``base`` what the package needs, anything else an extra. With ``--lowest`` first, the
lowest version that each allows.
"""

import re
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
groups = {
    "build": project["build-system"]["requires"],
    "base": project["project"]["dependencies"],
    **project["project"]["optional-dependencies"],
}
names = sys.argv[1:]
lowest = names[:1] == ["--lowest"]
for name in names[lowest:]:
    for requirement in groups[name]:
        print(re.sub(r">=([\w.]+)(,<[\w.]+)?", r"==\1", requirement) if lowest else requirement)
