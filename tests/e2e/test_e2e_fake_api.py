"""The sandbox of the end-to-end tests blocks the network, and the fake API answers like the real one."""

from __future__ import annotations

import json
import os
import pwd
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest

from offline import sandbox
from offline.fake_api import FakeAPI

TOOLS = [{"name": "Bash"}]


def post(api: FakeAPI, path: str, body: Any) -> bytes:
    request = urllib.request.Request(api.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return bytes(response.read())


def ask(prompt: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "tools": TOOLS, "messages": [{"role": "user", "content": prompt}], **more}


def test_nothing_but_loopback_can_be_reached() -> None:
    assert sandbox.why_not() is None
    with pytest.raises(OSError, match="unreachable"):
        socket.create_connection(("192.0.2.1", 443), timeout=5)


def test_nothing_of_the_environment_comes_in() -> None:
    assert {name for name in os.environ if "ANTHROPIC" in name or name.startswith("CLAUDE_CODE")} == set()
    assert os.environ["HOME"] == os.environ["TMPDIR"] != pwd.getpwuid(os.getuid()).pw_dir


def test_a_stream_and_a_whole_reply_are_the_same(api: FakeAPI) -> None:
    whole = json.loads(post(api, "/v1/messages", ask("[[unicode]]")))
    events = [
        json.loads(line.removeprefix(b"data: "))
        for line in post(api, "/v1/messages?beta=true", ask("[[unicode]]", stream=True)).split(b"\n")
        if line.startswith(b"data: ")
    ]
    kinds = [event["type"] for event in events if event["type"] != "content_block_delta"]
    assert kinds == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    streamed = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
    # Each delta is separate JSON. As in the CLI, adjacent surrogate halves join to one character.
    assert streamed.encode("utf-16", "surrogatepass") == whole["content"][0]["text"].encode("utf-16", "surrogatepass")
    assert [(request.script, request.step) for request in api.requests] == [("unicode", 0), ("unicode", 0)]


def test_the_step_follows_from_the_conversation(api: FakeAPI) -> None:
    body = ask("[[read]]")
    called = json.loads(post(api, "/v1/messages", body))
    assert called["stop_reason"] == "tool_use"
    result = {"type": "tool_result", "tool_use_id": called["content"][0]["id"], "content": "read"}
    body["messages"] += [
        {"role": "assistant", "content": called["content"]},
        {"role": "user", "content": [result]},
    ]
    assert json.loads(post(api, "/v1/messages", body))["content"] == [{"type": "text", "text": "I have read it."}]


def test_other_requests_are_harmless_and_kept(api: FakeAPI) -> None:
    side = json.loads(post(api, "/v1/messages", {**ask("A title for [[error_500]]?"), "tools": []}))
    assert side["content"] == [{"type": "text", "text": "ok"}]
    assert json.loads(post(api, "/v1/messages/count_tokens", ask("x")))["input_tokens"] > 0
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(api.url + "/api/hello", timeout=10)
    caught.value.close()
    assert caught.value.code == 404
    assert [request.path for request in api.requests] == ["/v1/messages", "/v1/messages/count_tokens", "/api/hello"]


@pytest.mark.parametrize(("script", "status"), [("error_400", 400), ("error_401", 401), ("error_429", 429)])
def test_a_failure_has_the_form_that_the_api_gives_it(script: str, status: int, api: FakeAPI) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(api, "/v1/messages", ask(f"[[{script}]]"))
    error = json.load(caught.value)
    caught.value.close()
    assert caught.value.code == status
    assert error["type"] == "error"
    assert set(error["error"]) == {"type", "message"}
