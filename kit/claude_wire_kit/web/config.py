"""The service's configuration: a TOML file with the CLIs that clients may start, and the folders for their sessions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import msgspec

from claude_wire import ClaudeOptions
from claude_wire.support import fields_of, require_one_of, type_of
from claude_wire_kit.supervisor.attach import spec_of
from claude_wire_kit.supervisor.frames import Spec

#: Environment variables that the service passes to each CLI. A profile may name additional variables.
BASIC_ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "XDG_CONFIG_HOME")

#: The permission modes that a client may switch to. Only a profile can set other modes.
MODES = ("default", "acceptEdits", "plan")

_Value: TypeAlias = str | int | float | bool
_Name = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")]


class ConfigError(ValueError):
    """The configuration is invalid. The message names the file and the profile."""


class ChoiceError(ValueError):
    """A client chose an option that its profile does not offer."""


class FolderError(ValueError):
    """A folder is not below any of its profile's roots."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A CLI that clients may start. A client chooses a profile, a folder, and values from the profile's ``choices``.

    Attributes:
        roots: clients may start sessions in these folders and below them. ``~`` is the home folder.
        options: fields of :class:`~claude_wire.ClaudeOptions`: ``model``, ``permission_mode``, ``mcp_config``, …
        choices: field of ``ClaudeOptions`` -> the values that a client may choose instead of the value in ``options``.
            The default for ``permission_mode`` is :data:`MODES`.
        argv: a whole command line, instead of the options.
        env: names of environment variables that the service passes to the CLI, besides :data:`BASIC_ENVIRONMENT`.
        cost_usd: limit in US dollars. At the limit, the supervisor interrupts the turn. None for no limit.
    """

    roots: Annotated[list[str], msgspec.Meta(min_length=1)]
    options: dict[str, Any] = {}
    choices: dict[str, list[_Value]] = {}
    argv: list[str] | None = None
    env: list[str] = []
    cost_usd: float | None = None

    def folder(self, path: str) -> str:
        """Return the real path of a folder that a client named, with symbolic links and ``..`` resolved.

        Args:
            path: absolute, or relative to the first root.

        Raises:
            FolderError: the path is not below a root, or is not a folder.
        """
        roots = [os.path.realpath(os.path.expanduser(root)) for root in self.roots]
        if "\0" in path:
            raise FolderError("the path of a folder must not contain a NUL character")
        found = os.path.realpath(os.path.join(roots[0], path))
        if not any(found == root or found.startswith(root.rstrip(os.sep) + os.sep) for root in roots):
            raise FolderError("the folder is not inside a root of the profile")
        if not os.path.isdir(found):
            raise FolderError("the folder does not exist inside the roots of the profile")
        return found

    @property
    def offered(self) -> dict[str, list[_Value]]:
        """The choices with the default for ``permission_mode``, without empty lists."""
        offered: dict[str, list[_Value]] = {} if self.argv is not None else {"permission_mode": [*MODES]}
        return {name: values for name, values in {**offered, **self.choices}.items() if values}

    def check(self, chosen: Mapping[str, Any]) -> None:
        """Check that the profile offers each option that a client chose.

        Raises:
            ChoiceError: the profile does not offer one of the options.
        """
        for name, value in chosen.items():
            # Also compare the type: True == 1.
            if not any(type(one) is type(value) and one == value for one in self.offered.get(name, ())):
                raise ChoiceError(f"the profile does not offer this {name!r}")

    def spec(
        self, folder: str, name: str | None, resume: str | None = None, chosen: Mapping[str, Any] | None = None
    ) -> Spec:
        """Return the spec for the CLI that the supervisor will start.

        Args:
            folder: a folder from :meth:`folder`.
            name: the session's name in lists.
            resume: the CLI's id of a session to resume.
            chosen: options that passed :meth:`check`.

        Raises:
            CLINotFoundError: the CLI is not installed.
        """
        names = {*BASIC_ENVIRONMENT, *self.env}
        command = self.command(chosen)
        if resume is not None:
            if isinstance(command, ClaudeOptions):
                command = replace(command, resume=resume)
            else:
                command = [*command, "--resume", resume]
        return spec_of(
            command,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name in names},
            name=name,
            cost_usd=self.cost_usd,
        )

    def command(self, chosen: Mapping[str, Any] | None = None) -> ClaudeOptions | list[str]:
        """Return ``argv``, or the profile's options combined with the client's.

        Unless the profile says otherwise, the CLI sends text in deltas, and repeats prompts so all clients see them.

        Raises:
            TypeError, ValueError: the options are invalid.
        """
        if self.argv is not None:
            return self.argv
        options: dict[str, Any] = {"include_partial_messages": True, "replay_user_messages": True}
        return ClaudeOptions(**{**options, **self.options, **(chosen or {})})


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The service's configuration.

    Attributes:
        profiles: name -> profile. Without profiles, clients can use existing sessions, but cannot start new ones.
        hosts: host names that clients may use to reach the service, besides those of the loopback interface.
        origins: ``Origin`` headers that count as the page's own, such as ``https://name``, if a proxy changes them.
    """

    profiles: dict[_Name, Profile] = {}
    hosts: list[str] = []
    origins: list[str] = []


def load_config(path: str | os.PathLike[str]) -> Config:
    """Read a configuration in TOML.

    Raises:
        ValueError: the configuration is invalid. The message names the file and the profile.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read()
    where = os.fspath(path)
    try:
        plain = msgspec.toml.decode(data, type=dict[str, Any])
        for key in plain:
            require_one_of("a key", key, Config.__struct_fields__)
        for name, profile in fields_of(plain.get("profiles")).items():
            where = f"{os.fspath(path)}: profile {name!r}"
            for key in fields_of(profile):
                require_one_of("a key", key, Profile.__struct_fields__)
            msgspec.convert(profile, Profile)
        where = os.fspath(path)
        config = msgspec.convert(plain, Config)
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from error
    for name, profile in config.profiles.items():
        where = f"{os.fspath(path)}: profile {name!r}"
        if profile.argv is not None and profile.options:
            raise ConfigError(f"{where} must have argv or options, not both")
        if profile.argv is not None and profile.choices:
            raise ConfigError(f"{where} must have argv or choices, not both")
        if profile.argv == []:
            raise ConfigError(f"{where}: argv is empty")
        try:
            profile.command()
            for name, values in profile.choices.items():
                for value in values:
                    profile.command({name: value})
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where}: {type_of(error)}: {error}") from error
    return config
