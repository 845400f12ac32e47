"""Every event of the recorded sessions conforms to the published JSON schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recordings
from claude_wire import Decoder
from claude_wire_kit.events import Bridge, event_schema
from each import each

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = event_schema()


def validator_of(type: str) -> Any:
    """Return a validator for one type of event, which is much faster than one for all types."""
    found = SCHEMA["discriminator"]["mapping"][type]
    return jsonschema.Draft202012Validator({"$ref": found, "$defs": SCHEMA["$defs"]})


VALIDATORS = {type: validator_of(type) for type in SCHEMA["discriminator"]["mapping"]}


@each("name", recordings.names(), str)
def test_every_event_of_a_recorded_session_keeps_the_schema(name: str) -> None:
    ui = Bridge(partial=True, prompts=True, project=lambda conversation: "p")
    events = [event for message in Decoder().feed(recordings.load(name).stdout) for event in ui.add(message)]
    for event in [*events, *ui.end()]:
        data = json.loads(event.to_json())
        VALIDATORS[data["type"]].validate(data)


def test_the_schema_is_one_of_its_draft_and_takes_all_types() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    whole = jsonschema.Draft202012Validator(SCHEMA)
    ui = Bridge(partial=True)
    for message in Decoder().feed(recordings.load("05_perm_allow_deny").stdout):
        for event in ui.add(message):
            whole.validate(event.to_dict())


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "nothing"},
        {"type": "claude_response"},
        {"type": "claude_response", "content": 1},
        {"type": "operation", "id": "a", "kind": "dream", "title": "b", "state": "started"},
        {"type": "permission_cancelled", "requestId": "a", "reason": "answered", "allowed": "yes"},
    ],
)
def test_what_is_no_event_does_not_keep_it(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(wrong)
