"""A redacted recording has no secrets and no unknown texts, but the same structure, and each line is still JSON."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from claude_wire import Decoder, InvalidLine
from claude_wire.messages import Unknown
from claude_wire_kit.tap import recording, redact
from claude_wire_kit.tap.names import is_secret_name
from claude_wire_kit.tap.redact import Lines, redacted_flags, redacted_line
from claude_wire_kit.tap.secrets import KINDS, MASK, TEXT_CHARACTERS, masked_text
from each import each
from long_tests import LONG
from recordings import load, names
from secret_samples import SAMPLES, pieces
from tapped import SECONDS, cli_of, recorded, start, tap_of

every_kind = each("kind", SAMPLES, str)
INIT = '"session_id":"4b18c744-4cbf-47f5-8390-8f10b55cac4e","uuid":"4b18c744-4cbf-47f5-8390-8f10b55cac4f"'


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def assistant(*content: dict[str, Any]) -> dict[str, Any]:
    message = {"id": "msg_01", "role": "assistant", "model": "m", "content": list(content)}
    return {"type": "assistant", "message": message, "session_id": "s", "uuid": "u"}


def clean(value: Any, secret: str) -> Any:
    """Redact a line, and check that no piece of the secret is left. Return the decoded line."""
    redacted = redacted_line(line(value))
    assert redacted.endswith(b"\n")
    plain = json.loads(redacted)
    text = json.dumps(plain, ensure_ascii=False)
    assert [piece for piece in pieces(secret) if json.dumps(piece)[1:-1] in text] == [], text
    return plain


def shape(value: Any) -> Any:
    """Return the structure of a JSON value: the types of its values, and the sizes of its containers."""
    match value:
        case dict():
            return [shape(item) for item in value.values()]
        case list():
            return [[shape(item) for item in value]]
        case bool() | None:
            return value
        case int() | float():
            return "number"
        case _:
            return "string"


# --- kinds of secrets -------------------------------------------------------------------------------------------------


def test_there_are_forty_kinds_and_a_sample_of_each() -> None:
    assert len(SAMPLES) >= 40
    for name, (hints, pattern) in KINDS.items():
        found = [text for text, _ in SAMPLES.values() if re.search(pattern, text)]
        assert found, name
        assert any(hint in text.lower() for hint in hints for text in found), name


@every_kind
def test_in_a_text(kind: str) -> None:
    text, secret = SAMPLES[kind]
    given = assistant({"type": "text", "text": f"Look: {text}\nThat was all."})
    plain = clean(given, secret)
    assert shape(plain) == shape(given)
    said = plain["message"]["content"][0]["text"]
    assert said.startswith("Look: ")
    assert MASK in said


@every_kind
def test_in_a_key(kind: str) -> None:
    text, secret = SAMPLES[kind]
    given = assistant({"type": "tool_use", "id": "toolu_01", "name": "T", "input": {text: 1, f"{text} ": {text: 2}}})
    assert shape(clean(given, secret)) == shape(given)


@every_kind
def test_in_the_input_of_a_tool_within_lists_and_objects(kind: str) -> None:
    text, secret = SAMPLES[kind]
    given = assistant({"type": "tool_use", "id": "toolu_01", "name": "T", "input": {"a": [{"b": [1, text, None]}]}})
    plain = clean(given, secret)
    assert shape(plain) == shape(given)
    assert plain["message"]["content"][0]["id"] == "toolu_01"


@every_kind
def test_with_escapes_of_json(kind: str) -> None:
    text, secret = SAMPLES[kind]
    escaped = "".join(f"\\u{ord(one):04x}" for one in text)
    data = line(assistant({"type": "text", "text": "PLACE"})).replace(b"PLACE", escaped.encode())
    assert json.loads(data)["message"]["content"][0]["text"] == text
    redacted = redacted_line(data)
    assert not [piece for piece in pieces(secret) if piece in json.loads(redacted)["message"]["content"][0]["text"]]


@every_kind
@pytest.mark.parametrize("depth", [1, 2])
def test_with_escapes_within_escapes(kind: str, depth: int) -> None:
    """If a tool prints JSON, its output in the line is escaped twice or more."""
    text, secret = SAMPLES[kind]
    for _ in range(depth):
        text = '{"out": "' + "".join(f"\\u{ord(one):04x}" for one in text) + '"}'
    for shown in text, f"It printed {text}":
        plain = clean(assistant({"type": "text", "text": shown}), secret)
        left = plain["message"]["content"][0]["text"]
        for _ in range(depth + 1):
            left = masked_text(left) and left.encode().decode("unicode_escape")
            assert not [piece for piece in pieces(secret) if piece in left]


@every_kind
def test_in_json_within_a_text(kind: str) -> None:
    text, secret = SAMPLES[kind]
    inner = json.dumps({"content": [{"type": "text", "text": json.dumps({"a": text})}]})
    plain = clean({"type": "user", "message": {"role": "user", "content": inner}}, secret)
    assert shape(json.loads(plain["message"]["content"])) == shape(json.loads(inner))


@every_kind
def test_in_base64(kind: str) -> None:
    text, _ = SAMPLES[kind]
    data = base64.b64encode(f"{text}\n".encode()).decode()
    source = {"type": "base64", "media_type": "text/plain", "data": data}
    for given in (
        {"type": "user", "message": {"role": "user", "content": [{"type": "document", "source": source}]}},
        assistant({"type": "text", "text": f"data:text/plain;base64,{data}"}),
        assistant({"type": "text", "text": f"echo {data} | base64 -d"}),
    ):
        assert shape(clean(given, data)) == shape(given)


@every_kind
def test_in_a_url(kind: str) -> None:
    text, secret = SAMPLES[kind]
    clean(
        assistant({"type": "text", "text": f"https://example.com/?q={quote(text, safe='')}&x=1"}),
        quote(secret, safe=""),
    )


@every_kind
def test_split_over_deltas(kind: str) -> None:
    text = SAMPLES[kind][0][:120]
    for step in 1, 13:
        redacted = b""
        for begin in range(0, len(text), step):
            piece = text[begin : begin + step]
            for delta in (
                {"type": "text_delta", "text": piece},
                {"type": "thinking_delta", "thinking": piece},
                {"type": "input_json_delta", "partial_json": piece},
                {"type": "signature_delta", "signature": piece},
                {"type": "citations_delta", "citation": {"cited_text": piece}},
                {"type": "of_tomorrow_delta", "words": [piece]},
            ):
                event = {"type": "content_block_delta", "index": 0, "delta": delta}
                given = {"type": "stream_event", "event": event, "session_id": "s", "uuid": "u"}
                data = redacted_line(line(given))
                plain = json.loads(data)
                assert shape(plain) == shape(given)
                assert plain["event"]["delta"]["type"] == delta["type"]
                redacted += data
        text_left = redacted.decode()
        for key in "text", "thinking", "partial_json", "signature", "cited_text":
            assert f'"{key}":"{MASK}"' in text_left
        assert text_left.count(MASK) == 6 * len(range(0, len(text), step))


@every_kind
def test_in_requests_and_answers_of_both_sides(kind: str) -> None:
    text, secret = SAMPLES[kind]
    for given in (
        {
            "type": "control_request",
            "request_id": "r1",
            "request": {"subtype": "initialize", "appendSystemPrompt": text},
        },
        {
            "type": "control_request",
            "request_id": "r1",
            "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": text}},
        },
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": "r1", "response": {"message": text}},
        },
        {"type": "result", "subtype": "success", "result": text, "is_error": False, "session_id": "s"},
        {"type": "system", "subtype": "hook_progress", "hook_id": "h", "hook_name": "n", "stdout": text, "uuid": "u"},
    ):
        plain = clean(given, secret)
        assert shape(plain) == shape(given)
        assert plain["type"] == given["type"]


@every_kind
def test_in_the_arguments(kind: str) -> None:
    text, secret = SAMPLES[kind]
    flags = redacted_flags(["claude", "--settings", json.dumps({"env": {"A": text}}), f"--append={text}", text])
    assert len(flags) == 5
    assert not [piece for piece in pieces(secret) if piece in " ".join(flags)]


# --- fields -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Password", "DB_PASSWORD", "dbPassword", "passwd", "x-api-key", "apiKey", "API_KEY", "api.key"),
        *("ANTHROPIC_AUTH_TOKEN", "accessToken", "refresh_token", "secret", "client_secret", "AWS_SECRET_ACCESS_KEY"),
        *(
            "privateKey",
            "Authorization",
            "authorization",
            "Cookie",
            "set-cookie",
            "credentials",
            "auth",
            "pwd",
            "STRIPE_KEY",
        ),
    ],
)
def test_a_field_whose_name_is_that_of_a_secret(name: str) -> None:
    assert is_secret_name(name)
    value = {name: {"deep": ["hunter", 4711, True, None]}, "next": "hunted", "n": 4711}
    plain = clean(assistant({"type": "tool_use", "id": "toolu_01", "name": "T", "input": value}), "hunter")
    kept = plain["message"]["content"][0]["input"]
    assert kept["next"] == "hunted"
    assert kept["n"] == 4711
    assert kept[name]["deep"][0] == MASK
    assert kept[name]["deep"][2:] == [True, None]
    for pair in (
        {"env": [{"name": name, "value": "hunter"}]},
        {"headers": [[name, "hunter"]]},
        {"argv": ["tool", f"--{name}", "hunter", "next"]},
    ):
        clean(assistant({"type": "tool_use", "id": "toolu_01", "name": "T", "input": pair}), "hunter")


@pytest.mark.parametrize("name", ["input_tokens", "max_tokens", "maxOutputTokens"])
def test_numbers_of_tokens_stay(name: str) -> None:
    given = assistant({"type": "tool_use", "id": "toolu_01", "name": "T", "input": {name: 4711}})
    assert json.loads(redacted_line(line(given))) == given


@pytest.mark.parametrize(
    "text",
    [
        *("4b18c744-4cbf-47f5-8390-8f10b55cac4e", "toolu_01XFDUDYJgAACzvnptvVoYEL", "msg_01AbCdEfGh123456789012345"),
        *("claude-opus-4-1-20250805", "/home/user/project/src/module_2/file.py", "mcp__server_1__read_file"),
        *("Make two files.", "bypassPermissions", "https://example.com/a/b?c=d", "2026-11-23T23:59:59.123Z"),
        *("ls -la /tmp/a && git status", "def get_user_by_id(self, user_id: int) -> None:", "ANTHROPIC_API_KEY"),
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked_text(text) == text


@each("name", names(), str)
def test_recorded_sessions_stay_readable(name: str) -> None:
    """Each redacted line keeps its structure, its type, and the ids that connect it to other lines."""
    for stream in load(name).stdout, load(name).stdin:
        lines = stream.splitlines(keepends=True)
        redacted = [redacted_line(one) for one in lines]
        assert len(redacted) == len(lines)
        for before, after in zip(lines, redacted, strict=True):
            [message] = Decoder().feed(before.rstrip(b"\n") + b"\n") or [None]
            if message is None:
                assert after == before
                continue
            plain = json.loads(after)
            if isinstance(message, InvalidLine) or before.startswith(b"\xef\xbb\xbf"):
                assert plain == {"type": "masked", "bytes": len(before.rstrip(b"\n"))}
                continue
            given = json.loads(before)
            assert shape(plain) == shape(given)
            [again] = Decoder().feed(after.rstrip(b"\n") + b"\n")
            assert type(again) is type(message)
            for key in "type", "subtype", "session_id", "uuid", "parent_tool_use_id", "request_id":
                assert isinstance(message, Unknown) or plain.get(key) == given.get(key)


# --- what is unknown --------------------------------------------------------------------------------------------------


def test_an_unknown_field_is_masked() -> None:
    given = assistant({"type": "text", "text": "a", "new": ["b", 7]})
    given["newer"] = {"name": "b", "n": 1.5, "yes": True}
    plain = json.loads(redacted_line(line(given)))
    assert plain["message"]["content"][0] == {"type": "text", "text": "a", "new": [MASK, 0]}
    assert plain["newer"] == {"name": MASK, "n": 0, "yes": True}
    assert plain["session_id"] == "s"


def test_a_line_and_a_block_of_an_unknown_type_are_masked() -> None:
    given = {"type": "of_tomorrow", "subtype": "x", "session_id": "s", "of": {"a": "b"}}
    assert json.loads(redacted_line(line(given))) == {
        "type": "of_tomorrow",
        "subtype": "x",
        "session_id": MASK,
        "of": {"a": MASK},
    }
    block = {"type": "of_tomorrow", "words": "b"}
    assert json.loads(redacted_line(line(assistant(block))))["message"]["content"] == [
        {"type": "of_tomorrow", "words": MASK}
    ]
    assert json.loads(redacted_line(line({"type": "hunter 2"}))) == {"type": MASK}


@pytest.mark.parametrize(
    "data",
    [
        b"hunter2",
        b"[1]",
        b'{"a":',
        b'{"type":"user","x":NaN}',
        b'{"type":"user","x":1e999}',
        b"\xff",
        b'{"type":"user","message":{"role":"user","content":"' + b"\xff" + b'"}}',
        b"[" * 100_000,
        b'{"type":"user","type":"assistant"}',
        b'"\\ud800"',
        b"1" * 5000,
    ],
    ids=lambda data: repr(data[:20]),
)
def test_what_is_no_object_becomes_one_that_tells_its_size(data: bytes) -> None:
    assert json.loads(redacted_line(data + b"\n")) == {"type": "masked", "bytes": len(data)}
    assert json.loads(redacted_line(data)) == {"type": "masked", "bytes": len(data)}


def test_blank_lines_stay() -> None:
    assert Lines().feed(b"\n \r\n\n") == b"\n \r\n\n"


def test_lone_surrogates_stay() -> None:
    data = b'{"type":"user","message":{"role":"user","content":"\\ud83d half"}}\n'
    assert json.loads(redacted_line(data)) == json.loads(data)


def test_a_line_that_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "LINE_BYTES", 100)
    lines = Lines()
    written = lines.feed(b'{"a":"' + b"x" * 60)
    written += lines.feed(b"x" * 60)
    assert len(lines._begun) == 0
    written += lines.feed(b'"}\n{"type":"keep_alive"}\nrest')
    written += lines.close()
    assert [json.loads(one) for one in written.splitlines()] == [
        {"type": "masked", "bytes": 128},
        {"type": "keep_alive"},
        {"type": "masked", "bytes": 4},
    ]


def test_a_text_that_is_too_long_is_masked_as_a_whole() -> None:
    assert masked_text("a " * (TEXT_CHARACTERS // 2)) != MASK
    assert masked_text("a " * (TEXT_CHARACTERS // 2) + "a") == MASK


def test_a_text_with_escapes_and_very_many_secrets_is_masked_as_a_whole() -> None:
    secrets = " ".join(f"a{number}@example.com" for number in range(5000))
    assert masked_text(secrets).count(MASK) == 5000
    assert masked_text(f"{secrets} %41") == MASK


@pytest.mark.parametrize("size", [1, 2, 7, 100, 4096])
def test_lines_may_be_cut_anywhere(size: int) -> None:
    stream = load("04_tools_bypass_partial").stdout[:60_000]
    lines = Lines()
    cut = b"".join(lines.feed(stream[begin : begin + size]) for begin in range(0, len(stream), size)) + lines.close()
    assert cut == b"".join(map(redacted_line, stream.splitlines(keepends=True)))


# --- any JSON ---------------------------------------------------------------------------------------------------------

SECRETS = st.sampled_from([text for text, _ in SAMPLES.values()])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text() | SECRETS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | SECRETS, inner, max_size=4),
    max_leaves=12,
)
LINES = st.builds(
    lambda kind, fields: {**fields, "type": kind},
    st.sampled_from(["user", "assistant", "result", "system", "stream_event", "control_request", "new"]) | st.text(),
    st.dictionaries(st.sampled_from(["message", "event", "request", "response", "subtype", "x"]) | st.text(), JSON),
)
WRAPPED = JSON.map(lambda value: assistant({"type": "tool_use", "id": "toolu_01", "name": "T", "input": {"a": value}}))


@settings(max_examples=300 if LONG else 60, deadline=None)
@hypothesis.given(given=LINES | WRAPPED, spaced=st.booleans())
def test_any_object_stays_one_of_the_same_structure_without_secrets(given: dict[str, Any], spaced: bool) -> None:
    data = json.dumps(given, ensure_ascii=spaced, indent=None).encode("utf-8", "surrogatepass")
    plain = json.loads(redacted_line(data))
    if plain.get("type") != "masked":
        assert shape(plain) == shape(given)
    text = json.dumps(plain, ensure_ascii=False)
    for sample, secret in SAMPLES.values():
        if sample in json.dumps(given, ensure_ascii=False):
            assert secret not in text


@settings(max_examples=300 if LONG else 60, deadline=None)
@hypothesis.given(data=st.binary() | st.text().map(str.encode))
def test_any_bytes_become_lines_of_json(data: bytes) -> None:
    lines = Lines()
    written = lines.feed(data) + lines.close()
    assert written.count(b"\n") == data.count(b"\n")
    for one in written.split(b"\n"):
        assert not one.strip() or json.loads(one) is not None


# --- the tap ----------------------------------------------------------------------------------------------------------


def test_a_redacted_recording_has_no_secret_in_any_file(tmp_path: Path) -> None:
    """Send every kind of secret both ways, in arguments and on standard error. The host receives them unchanged."""
    texts = [text for text, _ in SAMPLES.values()]
    sent = b"".join(line({"type": "user", "message": {"role": "user", "content": text}}) for text in texts)
    said = b"".join(line(assistant({"type": "text", "text": text})) for text in texts) + b"torn " + texts[2].encode()
    (tmp_path / "said").write_bytes(said)
    (tmp_path / "err").write_text("\n".join(texts) + "\n")
    code = (
        f"while os.read(0, 65536): pass\nfor fd, name in ((1, 'said'), (2, 'err')):\n"
        f"    data = open({str(tmp_path)!r} + '/' + name, 'rb').read()\n"
        "    while data: data = data[os.write(fd, data):]\n"
    )
    command = [*tap_of(cli_of(tmp_path / "cli", code), tmp_path / "recorded", "redacted"), "--settings", texts[2]]
    with start(command) as process:
        out, errors = process.communicate(sent, timeout=SECONDS)
    assert (out, process.returncode) == (said, 0)
    assert errors == (tmp_path / "err").read_bytes()
    kept = recorded(tmp_path / "recorded")
    whole = b"\n".join(kept.files.values()).decode()
    for name, (_, secret) in SAMPLES.items():
        assert not [piece for piece in pieces(secret) if piece in whole or json.dumps(piece)[1:-1] in whole], name
    for stream, count in (kept.stdin, len(texts)), (kept.stdout, len(texts) + 1):
        assert len([json.loads(one) for one in stream.splitlines()]) == count
    assert kept.stderr == b"[masked]\n" * (tmp_path / "err").read_bytes().count(b"\n")
    assert kept.exit_code == 0
    assert [step.direction for step in kept.steps] == ["in"] * len(texts) + ["out"] * (len(texts) + 1)


def test_a_recording_that_cannot_be_redacted_in_time_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "WAITING_BYTES", 100_000)
    told: list[str] = []
    held = threading.Event()
    monkeypatch.setattr(Lines, "feed", lambda *given: held.wait() and b"")
    redacted = recording.RedactedRecording(str(tmp_path / "recorded"), ["claude"], 0.0, told.append)
    for _ in range(30):
        redacted.put(recording.STDOUT, b"x" * 10_000)
    assert redacted.is_over
    assert told == ["the recording ends before the session: too much waits to be redacted"]
    held.set()


def test_redacting_is_about_recordings() -> None:
    command = [sys.executable, "-m", "claude_wire_kit", "tap", "--redact", "--cli", "/bin/cat"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 2
    assert "--redact needs --record" in done.stderr
