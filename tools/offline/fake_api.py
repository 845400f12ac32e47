"""A fake Messages API, for a CLI that must not reach the real one. It streams the replies of a script.

A test gives the server named *scripts*, and selects one in the prompt by ``[[name]]``::

    with FakeAPI({"greet": [Reply(text("Hello "), text("world"))]}) as api:
        run_cli(base_url=api.url, prompt="Please [[greet]]")

A script is a list of *steps*. Each step answers one request. The server counts the assistant messages in the request
after the prompt that selects the script: after two such messages, it plays the third step. So lost or repeated
requests do not matter, and a script with a tool call has two steps. A step is a `Reply`, a `Failure`, or a list of
both: one for each attempt, and the last for all later attempts. The prompt of a subagent selects another script. A turn
that the CLI begins on its own, because a background task ended, continues the script of the last prompt.

A `Reply` may have a *gate*: it waits until the test calls `FakeAPI.open`. With gates, two conversations that run at the
same time always continue in the same order. A gate before the last piece of a text block gives a test time to check the
part before it.

Ids contain the script's name and the step, so two runs of a script give the same bytes. Token counts are numbers of
characters. Requests that select no script, such as the CLI's own questions, get a short harmless reply.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Union

__all__ = ["Block", "Failure", "FakeAPI", "Reply", "Request", "deltas", "text", "thinking", "tool"]

#: Matches the name of a script in a prompt.
MARKER = re.compile(r"\[\[([\w-]+)\]\]")
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Block:
    """A content block: its start, its deltas, and the seconds between two deltas.

    The last delta waits until the gate named `gate` is open.
    """

    start: Mapping[str, Any]
    deltas: Sequence[Mapping[str, Any]]
    pause: float = 0.0
    gate: str | None = None


def text(*pieces: str, gate: str | None = None) -> Block:
    """Return a text block with one delta per piece. The last piece waits until the gate named `gate` is open."""
    return Block({"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces], gate=gate)


def deltas(count: int, *, pause: float = 0.0) -> Block:
    """Return a text block of `count` numbered deltas, with `pause` seconds between two of them."""
    return Block(text().start, text(*(f"word {number} " for number in range(count))).deltas, pause)


def thinking(*pieces: str, signature: str = "c2lnbmF0dXJl") -> Block:
    """Return a thinking block. Its signature is the last delta."""
    return Block(
        {"type": "thinking", "thinking": "", "signature": ""},
        [
            *({"type": "thinking_delta", "thinking": piece} for piece in pieces),
            {"type": "signature_delta", "signature": signature},
        ],
    )


def tool(name: str, /, **arguments: Any) -> Block:
    """Return a tool call. Its input is sent as two JSON fragments, because the real API may split it at any point."""
    whole = json.dumps(arguments)
    halves = [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
    return Block(
        {"type": "tool_use", "name": name, "input": {}},
        [{"type": "input_json_delta", "partial_json": half} for half in halves],
    )


class Reply:
    """A message from the assistant.

    Args:
        blocks: the content.
        stall: seconds before the first byte.
        gate: name of a gate; nothing is sent before it is open.
        cut: end the stream after this many events with an ``overloaded_error`` event, as the real API does when it
            gives up in the middle of a message.
        stop_reason: by default ``tool_use`` if there is a tool call, else ``end_turn``.
    """

    def __init__(
        self,
        *blocks: Block,
        stall: float = 0.0,
        gate: str | None = None,
        cut: int | None = None,
        stop_reason: str | None = None,
    ) -> None:
        self.blocks = blocks
        self.stall = stall
        self.gate = gate
        self.cut = cut
        self.stop_reason: str = stop_reason or (
            "tool_use" if any(block.start["type"] == "tool_use" for block in blocks) else "end_turn"
        )

    def content(self, name: str) -> list[dict[str, Any]]:
        """Return the finished blocks. Their ids contain `name`."""
        finished: list[dict[str, Any]] = []
        for index, block in enumerate(self.blocks):
            whole = self._started(block, name, index)
            for delta in block.deltas:
                if delta["type"] == "text_delta":
                    whole["text"] += delta["text"]
                elif delta["type"] == "thinking_delta":
                    whole["thinking"] += delta["thinking"]
                elif delta["type"] == "signature_delta":
                    whole["signature"] = delta["signature"]
            if whole["type"] == "tool_use":
                whole["input"] = json.loads("".join(delta["partial_json"] for delta in block.deltas))
            finished.append(whole)
        return finished

    def message(self, name: str, model: str) -> dict[str, Any]:
        """Return the whole message, for a request without streaming."""
        content = self.content(name)
        return {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": _usage(output=len(json.dumps(content))),
        }

    def events(self, name: str, model: str) -> Iterator[tuple[dict[str, Any], float, str | None]]:
        """Yield the events of the stream. Each has the seconds to wait before it, and the gate to wait for, if any."""
        started: dict[str, Any] = {
            **self.message(name, model),
            "content": [],
            "stop_reason": None,
            "usage": _usage(output=1),
        }
        yield {"type": "message_start", "message": started}, self.stall, None
        yield {"type": "ping"}, 0.0, None
        size = 0
        for index, block in enumerate(self.blocks):
            yield (
                {"type": "content_block_start", "index": index, "content_block": self._started(block, name, index)},
                0.0,
                None,
            )
            for number, delta in enumerate(block.deltas, 1):
                size += len(str(delta))
                gate = block.gate if number == len(block.deltas) else None
                yield {"type": "content_block_delta", "index": index, "delta": delta}, block.pause, gate
            yield {"type": "content_block_stop", "index": index}, 0.0, None
        ended = {"stop_reason": self.stop_reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": size}}, 0.0, None
        yield {"type": "message_stop"}, 0.0, None

    @staticmethod
    def _started(block: Block, name: str, index: int) -> dict[str, Any]:
        identity = {"id": f"toolu_{name}_{index}"} if block.start["type"] == "tool_use" else {}
        return {**block.start, **identity}


@dataclass(frozen=True)
class Failure:
    """An HTTP error with a body like the API's. `retry_after` is the value of the header `retry-after`, in seconds."""

    status: int
    type: str = "api_error"
    message: str = "The fake API was told to fail"
    retry_after: int | None = None


Step = Union[Reply, Failure, "list[Reply | Failure]"]


@dataclass(frozen=True)
class Request:
    """A request that the server received, when it arrived (monotonic seconds), and the script that answered it."""

    method: str
    path: str
    body: dict[str, Any]
    script: str | None = None
    step: int = 0
    time: float = field(default_factory=time.monotonic)


def _usage(output: int) -> dict[str, Any]:
    return {
        "input_tokens": 10,
        "output_tokens": output,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "service_tier": "standard",
    }


def _chunk(event: dict[str, Any]) -> bytes:
    """Encode an event as one chunk of HTTP's chunked transfer encoding."""
    data = b"event: " + event["type"].encode() + b"\ndata: " + _dump(event) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def _dump(value: object) -> bytes:
    """Encode JSON as the real API does: in UTF-8, with escapes for lone surrogates, which UTF-8 cannot encode."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", written).encode()


def _texts(message: Mapping[str, Any]) -> Iterable[str]:
    content = message.get("content", "")
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block.get("type") == "text"]


class FakeAPI:
    """The server. It runs during a ``with`` block, on a free port of the loopback interface."""

    def __init__(self, scripts: Mapping[str, Sequence[Step]]) -> None:
        self._scripts = scripts
        self._lock = threading.Lock()
        self._attempts: Counter[tuple[str, int]] = Counter()
        #: Set when the server stops, which ends all waits.
        self._stopped = threading.Event()
        self._gates: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        #: All requests, in the order of arrival.
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FakeAPI:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopped.set()
        for name in list(self._gates):
            self.open(name)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait(self, seconds: float) -> bool:
        """Wait for some seconds, or until the server stops. Return True if the server is still running."""
        return not (self._stopped.wait(seconds) if seconds else self._stopped.is_set())

    def open(self, gate: str) -> None:
        """Open a gate: replies that wait for it are sent, and later ones do not wait."""
        with self._lock:
            self._gates[gate].set()

    def wait_for(self, gate: str) -> bool:
        """Wait until a gate is open, or until the server stops. Return True if the server is still running."""
        with self._lock:
            opened = self._gates[gate]
        # When the server stops, it opens only the gates that exist. A new one would never be opened.
        if not self._stopped.is_set():
            opened.wait()
        return not self._stopped.is_set()

    def asked(self, script: str) -> list[Request]:
        """Return the requests that this script has answered."""
        with self._lock:
            return [request for request in self.requests if request.script == script]

    def note(self, request: Request) -> None:
        """Add a request to :attr:`requests`."""
        with self._lock:
            self.requests.append(request)

    def answer(self, body: dict[str, Any]) -> tuple[str, Reply | Failure]:
        """Return the name for the ids in the reply to a request, and the reply."""
        script, step = self._place(body)
        self.note(Request("POST", "/v1/messages", body, script, step))
        if script is None:
            return "side", Reply(text("ok"))
        steps = self._scripts[script]
        if step >= len(steps):
            return f"{script}_{step}", Reply(text("The script has no further step."))
        with self._lock:
            attempt = self._attempts[script, step]
            self._attempts[script, step] += 1
        chosen = steps[step]
        if isinstance(chosen, list):
            chosen = chosen[min(attempt, len(chosen) - 1)]
        return f"{script}_{step}", chosen

    def _place(self, body: dict[str, Any]) -> tuple[str | None, int]:
        """Return the script of a conversation, and how many of its steps are done."""
        done = 0
        # Requests of the agent have tools. The CLI's own questions, such as one for a title, only quote the prompt.
        if not body.get("tools"):
            return None, 0
        for message in reversed(body.get("messages", [])):
            if message["role"] == "assistant":
                done += 1
                continue
            if message["role"] == "user":
                # The CLI joins queued messages, and the output of commands, into one message with several text blocks.
                for written in reversed(list(_texts(message))):
                    named = [name for name in MARKER.findall(written) if name in self._scripts]
                    if named:
                        return named[-1], done
        return None, 0


def _handler(api: FakeAPI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            path = self.path.partition("?")[0]
            if path == "/v1/messages":
                self._message(body)
                return
            api.note(Request("POST", path, body))
            if path == "/v1/messages/count_tokens":
                self._respond(200, {"input_tokens": len(json.dumps(body)) // 4})
            else:
                self._respond(404, {"type": "error", "error": {"type": "not_found_error", "message": "no such path"}})

        def do_GET(self) -> None:
            api.note(Request(self.command, self.path.partition("?")[0], {}))
            self._respond(404, {"type": "error", "error": {"type": "not_found_error", "message": "no such path"}})

        do_HEAD = do_GET

        def _message(self, body: dict[str, Any]) -> None:
            name, reply = api.answer(body)
            if isinstance(reply, Reply) and reply.gate is not None and not api.wait_for(reply.gate):
                self.close_connection = True
                return
            if isinstance(reply, Failure):
                error = {"type": "error", "error": {"type": reply.type, "message": reply.message}}
                headers = {} if reply.retry_after is None else {"retry-after": str(reply.retry_after)}
                self._respond(reply.status, error, headers)
            elif body.get("stream"):
                self._stream(reply, name, body["model"])
            else:
                api.wait(reply.stall)
                self._respond(200, reply.message(name, body["model"]))

        def _stream(self, reply: Reply, name: str, model: str) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("cache-control", "no-cache")
            self.send_header("request-id", f"req_{name}")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            data = b""
            for number, (event, pause, gate) in enumerate(reply.events(name, model)):
                if not api.wait(pause) or (gate is not None and not api.wait_for(gate)):
                    self.close_connection = True
                    return
                if number == reply.cut:
                    data += _chunk({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
                    break
                data += _chunk(event)
                # Send the end of a block and the end of its message in one write. The CLI runs a tool as soon as its
                # block has ended. If the tool's result ends the turn, the result message counts the output tokens of
                # message_delta only if the CLI has read message_delta by then.
                if event["type"] not in ("content_block_stop", "message_delta"):
                    self.wfile.write(data)
                    data = b""
            self.wfile.write(data + b"0\r\n\r\n")

        def _respond(self, status: int, value: object, headers: Mapping[str, str] | None = None) -> None:
            content = _dump(value)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.send_header("request-id", "req_fake")
            for key, header in (headers or {}).items():
                self.send_header(key, header)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def handle(self) -> None:
            # An interrupted or killed CLI closes the connection, which is not an error here.
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing: `FakeAPI.requests` has the requests."""

    return Handler
