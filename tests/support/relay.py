"""A program that relays between its standard streams and a supervisor's socket."""

from __future__ import annotations

import os
import socket
import sys
import threading


def main() -> None:
    """Relay until either side ends."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(sys.argv[1])
    except OSError as error:
        sys.exit(f"Error: {error.strerror}")

    def up() -> None:
        while data := os.read(0, 65536):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=up, daemon=True).start()
    while data := connection.recv(65536):
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
