"""The command ``claude-wire serve``: serve the sessions of a supervisor over HTTP."""

from __future__ import annotations

import ipaddress
import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from claude_wire import ClaudeOptions
from claude_wire.errors import CLINotFoundError
from claude_wire.support import install_extra, printable
from claude_wire_kit.commands.shared import signals
from claude_wire_kit.commands.shared.failure import Failure, missing_cli
from claude_wire_kit.commands.shared.options import takes_state_folder
from claude_wire_kit.commands.supervisor.client import failures, folder_of, wait_for_end
from claude_wire_kit.supervisor.attach import connect
from claude_wire_kit.supervisor.disk.files import open_private

if TYPE_CHECKING:
    from claude_wire_kit.supervisor.disk.folder import StateFolder
    from claude_wire_kit.web import Config

#: The default address to listen on.
ADDRESS = "127.0.0.1"
PORT = 8765
#: Wait at most this many seconds for the supervisor of ``--demo`` to exit.
END_SECONDS = 10.0
#: The first prompt of ``--demo``.
GREETING = "Hello! What can you show me?"


@click.command()
@click.option(
    "-c", "--config", type=click.Path(dir_okay=False), metavar="FILE", help="TOML file with the profiles of sessions."
)
@takes_state_folder
@click.option("--listen", default=ADDRESS, metavar="ADDRESS", show_default=True, help="An address of this machine.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 for any free port.")
@click.option("--demo", is_flag=True, help="Try the page with an agent that needs no account and no network.")
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser.")
def serve(config: str | None, folder: str | None, listen: str, port: int, demo: bool, opens: bool) -> None:
    """Serve the sessions of the supervisor over HTTP.

    Programs and browsers on this machine can use the service, which needs Linux. If no supervisor is running, the
    command starts one. It prints the address to open in a browser; the address contains the token. For programs, it
    also prints the path of a file with the token. Anybody with the token can do what you can do. The default of
    --config is $XDG_CONFIG_HOME/claude-wire/serve.toml. Without that file, clients can start sessions in the current
    folder, with the environment of this command.

    Exit code: 0 after Ctrl-C; 2 if the service cannot start.
    """
    if sys.platform != "linux":
        raise Failure("claude-wire serve needs Linux, because the supervisor of its sessions does")
    try:
        import_module("claude_wire_kit.web")
    except ImportError as error:
        advice = install_extra("serve", distribution="claude-wire-kit", folder="./kit")
        raise Failure(f"serve needs starlette and uvicorn: {advice}") from error
    if demo and (config or folder):
        raise click.UsageError("--demo uses its own configuration and folder: leave out --config and --folder")
    if demo:
        with signals.unwound(), tempfile.TemporaryDirectory(prefix="claude-wire-") as own, _supervised(own) as state:
            settings = _demo_config(Path(own) / "shop")
            with failures():
                anyio.run(_begin_demo, state, settings)
            _serve(state, settings, listen, port, opens=opens)
        return
    settings = _config(config)
    state = folder_of(folder, makes=True)
    from claude_wire_kit.commands.supervisor.starting import in_background

    with failures():
        in_background(state, [])
    _serve(state, settings, listen, port, opens=opens)


def _config(path: str | None) -> Config:
    from claude_wire_kit.web import load_config

    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    wanted = path or os.path.join(home, "claude-wire", "serve.toml")
    shown = printable(wanted, keep="")
    try:
        return load_config(wanted)
    except OSError as error:
        if path is None and isinstance(error, FileNotFoundError):
            return _config_here(shown)
        raise Failure(f"{shown}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(printable(str(error))) from error


def _config_here(wanted: str) -> Config:
    """Return the default configuration: sessions in the current folder, with the environment of this process."""
    from claude_wire_kit.web import Config, Profile

    try:
        ClaudeOptions().argv()
    except CLINotFoundError as error:
        advice = missing_cli(error, f"options.cli_path of a profile in {wanted}").message
        click.echo(f"note: no session can be started: {advice}", err=True)
    return Config(profiles={"here": Profile(roots=[os.getcwd()], env=list(os.environ))})


def _demo_config(project: Path) -> Config:
    from claude_wire_kit.commands.guide import command
    from claude_wire_kit.commands.guide.project import write_project
    from claude_wire_kit.web import Config, Profile

    write_project(project)
    return Config(profiles={"demo": Profile(roots=[os.fspath(project)], argv=command())})


async def _begin_demo(state: StateFolder, config: Config) -> None:
    """Start the demo's session, and send its first prompt."""
    from claude_wire_kit.web.service import Service

    service = Service(connect(state.path), config)
    info = await service.create("demo", "", "The shop is one cent off")
    await service.prompt(info.id, GREETING, None)


@contextmanager
def _supervised(temporary: str) -> Generator[StateFolder]:
    """Run a supervisor in the folder ``temporary``, and stop it and its sessions when the block ends."""
    from claude_wire_kit.commands.supervisor.starting import in_background

    state = folder_of(os.path.join(temporary, "state"), makes=True)
    with failures():
        found, _ = in_background(state, [])
    try:
        yield state
    finally:
        with failures():
            anyio.run(partial(connect(state.path).stop, None, grace=0.0))
        wait_for_end(found.pid, found.pid_began, END_SECONDS)  # then the folder can be removed


def _serve(state: StateFolder, config: Config, address: str, port: int, *, opens: bool) -> None:
    from claude_wire_kit.web import create_app
    from claude_wire_kit.web.access import load_token
    from claude_wire_kit.web.server import ServiceServer, listen

    token_file = os.path.join(state.path, "serve-token")
    try:
        token = load_token(token_file)
        listener = listen(address, port)
    except OSError as error:
        what = token_file if error.filename else f"{address} port {port}"
        raise Failure(f"{printable(what, keep='')}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(printable(str(error), keep="")) from error
    with listener:
        port = listener.getsockname()[1]
        name = f"[{address}]" if ":" in address else address
        if not _is_loopback(address):
            click.echo("note: other machines can reach this address, and the connection is not encrypted", err=True)
        server = ServiceServer(create_app(connect(state.path), config, token, port=port))
        url = f"http://{name}:{port}/#token={token}"
        signals.announce(f"claude-wire serves {url}")
        signals.announce(f"the token is also in {printable(token_file, keep='')}")
        try:
            with _opened(state, url) if opens else nullcontext():
                server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass
        except ImportError as error:  # ServiceServer does not know the internals of this uvicorn
            raise Failure(str(error)) from error


@contextmanager
def _opened(state: StateFolder, url: str) -> Generator[None]:
    """Open the page in a browser, with a private file that redirects to it.

    The address contains the token, and all users of this machine can read the arguments of the browser's process.
    """
    path = os.path.join(state.path, f"open-{os.getpid()}.html")
    with open(path, "w", encoding="ascii", opener=open_private) as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={url}">\n')
    # In a thread, because a browser may take seconds to start, and the service must be running when it loads the page.
    threading.Thread(target=webbrowser.open, args=(Path(path).as_uri(),), daemon=True).start()
    try:
        yield
    finally:
        os.unlink(path)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
