"""Pack the folder for a release: ``python -m protocol.archive INTO`` writes ``INTO/protocol-VERSION.tar.gz``.

``VERSION`` is the library's version, read from Cargo.toml, so the library need not be installed. The archive has no
times or owners: the same files and the same zlib always give the same bytes.
"""

from __future__ import annotations

import gzip
import re
import sys
import tarfile
from pathlib import Path

__all__ = ["pack"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "protocol"


def pack(folder: Path, into: Path) -> Path:
    """Write the folder's archive, and return the archive's path."""
    [version] = re.findall(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text("utf-8"), re.MULTILINE)
    name = f"protocol-{version}"
    path = into / f"{name}.tar.gz"
    into.mkdir(parents=True, exist_ok=True)
    with (
        open(path, "wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for member in sorted(one for one in folder.rglob("*") if one.is_file()):
            entry = tarfile.TarInfo(f"{name}/{member.relative_to(folder).as_posix()}")
            entry.size, entry.mode = member.stat().st_size, 0o644
            with open(member, "rb") as content:
                archive.addfile(entry, content)
    return path


if __name__ == "__main__":
    print(pack(FOLDER, Path(sys.argv[1])))
