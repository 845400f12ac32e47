"""The smallest possible relay between a CLI and its client. A supervisor can only take longer than this relay.

``relay.py FILE ARGV...`` runs a program, and writes each chunk of its output to a file and then to standard output. It
uses asyncio callbacks, as the supervisor does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys


async def main(path: str, *argv: str) -> None:
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    output, its_output = os.pipe()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def on_readable() -> None:
        data = os.read(output, 1 << 16)
        if not data:
            loop.remove_reader(output)
            over.set_result(None)
            return
        os.write(file, data)
        os.write(1, data)

    with subprocess.Popen(argv, stdout=its_output):
        os.close(its_output)
        loop.add_reader(output, on_readable)
        await over


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
