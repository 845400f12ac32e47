"""`make generate` derives all lists of messages from the message classes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import generate
from folders import ROOT

SYSTEM = generate.MESSAGES / "system.py"
REQUESTS = generate.MESSAGES / "control" / "host_requests.py"
MESSAGE = '''

class TeaMessage(SystemMessage, kw_only=True, frozen=True):
    """The tea is ready."""

    subtype: Literal["tea"] = constant("tea")
    cups: int
'''
REQUEST = '''

class BrewResponse(Wire, kw_only=True, frozen=True):
    """How long the tea takes."""

    seconds: Number | None = None


class BrewRequest(ControlRequestBody[BrewResponse], tag="brew", kw_only=True, frozen=True):
    """Asks for tea."""
'''


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy the message classes to a temporary folder."""
    shutil.copytree(ROOT / generate.MESSAGES, tmp_path / generate.MESSAGES)
    return tmp_path


def _add(clone: Path, path: Path, source: str) -> None:
    with (clone / path).open("a", encoding="utf-8") as module:
        module.write(source)


def test_the_written_files_are_what_the_classes_say() -> None:
    generate.main(ROOT, check=True)


def test_a_new_message_is_in_the_union_the_kinds_the_names_and_the_page(clone: Path) -> None:
    _add(clone, SYSTEM, MESSAGE)
    generate.main(clone)
    registry = (clone / generate.MESSAGES / "registry.py").read_text()
    system = registry.partition("SystemSubtype: TypeAlias = (")[2].partition(")")[0]
    kinds, _, public = registry.partition("KindName: TypeAlias")[2].partition("__all__")
    assert "TeaMessage" in system
    assert '"system/tea"' in kinds
    assert '"TeaMessage"' in public
    kinds = generate.kinds_of_messages(clone)
    assert "- `system/tea`: `TeaMessage`\n" in kinds.partition("Sent by the agent")[2].partition("Sent by the host")[0]


def test_a_new_request_is_in_the_union_of_requests_and_its_answer_in_the_page(clone: Path) -> None:
    _add(clone, REQUESTS, REQUEST)
    generate.main(clone)
    payload = (clone / generate.MESSAGES / "control" / "payload.py").read_text()
    assert "BrewRequest" in payload.partition("ControlRequestPayload: TypeAlias = (")[2]
    assert '"control_request/brew"' in (clone / generate.MESSAGES / "registry.py").read_text()
    requests = generate.kinds_of_requests(clone).partition("Sent by the host")[2]
    assert "- `control_request/brew`: `BrewRequest`, answered by `BrewResponse`\n" in requests


def test_files_that_are_out_of_date_are_refused_with_what_to_do(clone: Path) -> None:
    generate.main(clone, check=True)
    _add(clone, SYSTEM, MESSAGE)
    with pytest.raises(SystemExit, match=r"registry.py differs from the message classes: run `make generate`"):
        generate.main(clone, check=True)
