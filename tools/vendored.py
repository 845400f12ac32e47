"""Check or update the npm packages that the kit's web page uses, in ``web/page/vendor``.

``vendored.py`` checks that the folder has exactly the files that ``packages.json`` lists, with their hashes, and that
the kit's THIRD_PARTY_LICENSES has the licence of each package. ``vendored.py --update`` downloads the listed versions
again; ``--update markdown-it@15.1.0`` downloads another version. Updating needs npm, which checks the hash of a
package.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "kit" / "claude_wire_kit" / "web" / "page" / "vendor"
LICENSES = ROOT / "kit" / "THIRD_PARTY_LICENSES"
LIST = "packages.json"
#: The packages' licences follow this line.
HEAD = f"\n{'=' * 80}\nPackages of npm in claude_wire_kit/web/page/vendor. tools/vendored.py writes what follows.\n"


def packages() -> dict[str, dict[str, Any]]:
    """Read ``packages.json``: package -> ``version``, ``license``, ``integrity`` and ``files``.

    ``files`` maps a name in the folder to ``from``, its path in the package, and ``sha256``. A package without files is
    bundled in a file of another package.
    """
    found: dict[str, dict[str, Any]] = json.loads((VENDOR / LIST).read_text())
    return found


def faults() -> list[str]:
    """Return a message for each fault in the folder or the licences."""
    listed = packages()
    wanted = {name: file["sha256"] for each in listed.values() for name, file in each["files"].items()}
    present = {path.name: digest(path.read_bytes()) for path in VENDOR.iterdir() if path.name != LIST}
    found = [f"{name} is missing" for name in sorted(wanted.keys() - present.keys())]
    found += [f"{name} is not in {LIST}" for name in sorted(present.keys() - wanted.keys())]
    found += [f"{name} was changed" for name in sorted(wanted.keys() & present.keys()) if wanted[name] != present[name]]
    named = set(re.findall(r"^Used by: (\S+ \S+) from npm", LICENSES.read_text(), re.MULTILINE))
    needed = {f"{name} {each['version']}" for name, each in listed.items()}
    found += [f"THIRD_PARTY_LICENSES of the kit lacks {name}" for name in sorted(needed - named)]
    found += [f"THIRD_PARTY_LICENSES of the kit has {name}, which is not used" for name in sorted(named - needed)]
    return found


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def update(versions: dict[str, str]) -> None:
    """Download all packages again and write their files and licences. ``versions`` overrides the listed versions."""
    listed = packages()
    licences: list[str] = []
    for name, each in listed.items():
        each["version"] = versions.get(name, each["version"])
        each["integrity"], content = pack(f"{name}@{each['version']}")
        about = json.loads(content["package.json"])
        each["license"] = about["license"]
        for local, file in each["files"].items():
            (VENDOR / local).write_bytes(content[file["from"]])
            file["sha256"] = digest(content[file["from"]])
        text = next(content[path] for path in sorted(content) if re.match(r"licen[cs]e", path, re.IGNORECASE))
        head = f"{each['license']}\nUsed by: {name} {each['version']} from npm"
        licences.append(f"\n{head}\n\n{text.decode().strip()}\n")
    (VENDOR / LIST).write_text(json.dumps(listed, indent=2) + "\n")
    own = LICENSES.read_text().partition(HEAD)[0].rstrip("\n")
    LICENSES.write_text(own + "\n" + HEAD + f"{'-' * 80}\n".join(licences))


def pack(package: str) -> tuple[str, dict[str, bytes]]:
    """Download a package from npm. Return its integrity hash, and path -> content."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder, package]
        (info,) = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        content: dict[str, bytes] = {}
        (packed,) = Path(folder).iterdir()
        with tarfile.open(packed) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    content[member.name.partition("/")[2]] = file.read()
        return info["integrity"], content


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--update"]:
        update(dict(each.rsplit("@", 1) for each in arguments[1:]))
    elif arguments:
        print(__doc__, file=sys.stderr)
        return 2
    found = faults()
    for fault in found:
        print(fault, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
