"""Check messages and answers against the message classes, and collect everything unknown, with its values.

This module does no I/O. `claude_wire_kit.survey.fields` walks through a message. This module adds the
answers to control requests, whose class depends on the request, and the requests that the CLI refuses as unknown.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from claude_wire import Decoder, decode
from claude_wire.messages import ControlResponse, InvalidLine, Message
from claude_wire.messages.base import Wire
from claude_wire.testing import Step
from claude_wire.transcripts.read import decoder_for
from claude_wire_kit.events.names import message_name
from claude_wire_kit.survey.answers import find_unknown
from claude_wire_kit.survey.fields import Finding, Found, found_in
from drift.requests import NO_REQUEST

__all__ = ["Comparison", "Drift"]

#: Requests that the SDK's typings declare, but that the CLI of the same version refuses from a host.
DECLARED_ONLY = {"set_color"}
#: Maximum number of values per drift, and of drifts, because a CLI may write any number of names.
MAX_VALUES, MAX_DRIFTS = 100, 1000


@dataclass
class Drift:
    """One difference between a CLI and this version."""

    #: ``new`` or ``gone``.
    change: str
    finding: Finding
    #: Where the difference was first found: a session and a line of its output, ``--help``, or a type in the typings.
    where: str
    values: list[Any] = field(default_factory=lambda: list[Any]())
    #: The class that lacks the field; None for other differences.
    owner: type[Wire] | None = None


def _place(drift: Drift) -> tuple[Any, ...]:
    what, name, path, reason = drift.finding
    return drift.change != "new", what == "field", what, path, name, reason


class Comparison:
    """Collects the differences of all messages that are passed in."""

    def __init__(self) -> None:
        #: Kind -> number of messages.
        self.kinds: Counter[str] = Counter()
        #: The kinds of messages in sessions.
        self.heard: set[str] = set()
        #: Source -> its count; ``floors`` has the names.
        self.found: Counter[str] = Counter()
        self._drifts: dict[tuple[str, Finding], Drift] = {}
        #: Subtype of a refused request -> the error and the place.
        self._refused: dict[str, tuple[str, str]] = {}

    def drifts(self) -> list[Drift]:
        """Return all differences, additions before removals, then kinds before fields, then by path."""
        words = self._refused.get(NO_REQUEST, ("", ""))[0]
        for subtype, (error, where) in self._refused.items():
            if words and subtype not in {NO_REQUEST, *DECLARED_ONLY} and error == words.replace(NO_REQUEST, subtype):
                self.add("gone", Finding("request", subtype, "control_request.request", "refused"), where)
        return sorted(self._drifts.values(), key=_place)

    def session(self, name: str, steps: Iterable[Step]) -> None:
        """Compare the lines of one session, in both directions."""
        asked: dict[Any, str] = {}
        typed, plainly, number = Decoder(), Decoder(dict), 0
        for step in steps:
            if step.direction == "in":
                sent = json.loads(step.data)
                if sent.get("type") == "control_request":
                    asked[sent["request_id"]] = sent["request"]["subtype"]
                continue
            number += 1
            self.found[f"scenario {name.partition('.')[0]}, lines"] += 1
            where = f"{name}, line {number}"
            line = step.data.removesuffix(b"\n") + b"\n"
            for message, plain in zip(typed.feed(line), plainly.feed(line), strict=True):
                if isinstance(plain, InvalidLine) or isinstance(message, InvalidLine):
                    self.add("new", Finding("line", "", "", "not one JSON object"), where)
                    continue
                self._compare(message, plain, where)
                self.heard.add(message_name(message))
                if isinstance(message, ControlResponse) and (subtype := asked.get(message.request_id)):
                    self.found["answers to requests"] += 1
                    if message.ok:
                        self.answer(subtype, message.payload, where)
                    else:
                        self._refused.setdefault(subtype, (str(plain["response"].get("error")), where))

    def transcript(self, name: str, data: bytes) -> None:
        """Compare a transcript that the CLI wrote. Its records do not count as messages."""
        typed, plainly = decoder_for("transcript"), Decoder(dict)
        lines = zip([*typed.feed(data), *typed.close()], [*plainly.feed(data), *plainly.close()], strict=True)
        for number, (record, plain) in enumerate(lines, 1):
            self.found["records of transcripts"] += 1
            where = f"{name}, line {number}"
            if isinstance(plain, InvalidLine) or isinstance(record, InvalidLine):
                self.add("new", Finding("line", "", "", "not one JSON object"), where)
                continue
            for found in found_in(plain, record):
                self._found(found, where)

    def message(self, plain: dict[str, Any], where: str) -> None:
        """Compare one of the CLI's messages."""
        self._compare(decode(json.dumps(plain)), plain, where)

    def _compare(self, message: Message, plain: dict[str, Any], where: str) -> None:
        self.kinds[message_name(message)] += 1
        for found in found_in(plain, message):
            self._found(found, where)

    def answer(self, subtype: str, payload: dict[str, Any], where: str) -> None:
        """Compare the payload of one of the CLI's answers."""
        for found in find_unknown(subtype, payload, json.loads(json.dumps(payload))):
            self._found(found, where)

    def add(
        self, change: str, finding: Finding, where: str, values: Iterable[Any] = (), owner: type[Wire] | None = None
    ) -> None:
        """Add a difference. If it was already added, only add its values."""
        key = (change, finding)
        if key not in self._drifts:
            if len(self._drifts) == MAX_DRIFTS:
                return
            self._drifts[key] = Drift(change, finding, where, [], owner)
        kept = self._drifts[key].values
        kept += list(values)[: MAX_VALUES - len(kept)]

    def _found(self, found: Found, where: str) -> None:
        self.add("new", found.finding, where, [found.value], found.owner)
