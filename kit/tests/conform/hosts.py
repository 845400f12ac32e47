"""Hosts that use no library. ``Host`` keeps every rule of ``claude-wire conform``; each other class breaks one rule.

``python hosts.py`` runs ``Host``, and ``python hosts.py NAME`` runs the class NAME.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

TASK: dict[str, Any] = json.loads(os.environ["CLAUDE_WIRE_CONFORM_TASK"])
CLI = os.environ["CLAUDE_WIRE_CONFORM_CLI"]
#: Seconds that the agent has to exit after its input has ended, before the host terminates it.
PATIENCE = float(os.environ.get("PATIENCE", "60"))
KNOWN = {"text_delta", "thinking_delta", "signature_delta", "input_json_delta", "init", "session_state_changed"} | {
    *("message_start", "message_delta", "message_stop", "content_block_start", "content_block_stop"),
    *("task_started", "task_notification"),
}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("add", "fail")]


class Host:
    """A host that keeps every rule. It reads the agent's lines in a loop, and continues its task after each line."""

    def __init__(self) -> None:
        self.left = list(TASK["acts"])
        self.printed: set[str] = set()
        self.unanswered: set[str] = set()
        self.idle = self.failed = False
        env = {**os.environ, "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
        pipe = subprocess.PIPE
        self.agent = subprocess.Popen([CLI, *self.flags()], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env)

    def flags(self) -> list[str]:
        flags = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        flags += ["--include-partial-messages"] if "partial" in TASK else []
        flags += ["--permission-prompt-tool", "stdio"] if "permission" in TASK else []
        flags += ["--resume", TASK["resume"]] if "resume" in TASK else []
        flags += ["--replay-user-messages"] if "replay" in TASK else []
        return flags + (["--json-schema", json.dumps(self.schema())] if "schema" in TASK else [])

    def schema(self) -> Any:
        return TASK["schema"]

    # --- the wire

    def write(self, **message: Any) -> None:
        assert self.agent.stdin is not None
        self.agent.stdin.write(json.dumps(message).encode() + b"\n")
        self.agent.stdin.flush()

    def request(self, **body: Any) -> None:
        self.write(type="control_request", request_id=f"r{id(body)}", request=body)

    def answer(self, request: dict[str, Any], payload: Any) -> None:
        response = {"subtype": "success", "request_id": request["request_id"], "response": payload}
        self.write(type="control_response", response=response)

    def refuse(self, request: dict[str, Any]) -> None:
        response = {"subtype": "error", "request_id": request["request_id"], "error": "unknown"}
        self.write(type="control_response", response=response)

    def send(self, text: str) -> None:
        uuid = f"prompt-{len(self.left)}"
        self.unanswered.add(uuid)
        self.write(type="user", message={"role": "user", "content": text}, uuid=uuid)

    def interrupt(self) -> None:
        self.request(subtype="interrupt")

    def run(self) -> int:
        hooks = {event: [{"matcher": None, "hookCallbackIds": [event]}] for event in TASK.get("hooks", ())}
        self.request(subtype="initialize", hooks=hooks, **({"sdkMcpServers": ["calc"]} if "mcp" in TASK else {}))
        assert self.agent.stdout is not None
        for line in self.agent.stdout:
            try:
                message = json.loads(line.decode(errors="replace"))
            except ValueError:
                continue
            if isinstance(message, dict):
                self.take(message)
                self.go_on()
        self.agent.wait()
        if self.unanswered:
            self.say_cut_off()
        return 0

    def go_on(self) -> None:
        while self.left:
            act = self.left[0]
            if "until" in act and act["until"] not in self.printed:
                return
            if "send" in act:
                self.send(act["send"])
            if "interrupt" in act:
                self.interrupt()
            del self.left[0]
        assert self.agent.stdin is not None
        if self.idle and not self.unanswered and not self.agent.stdin.closed:
            self.leave()

    def leave(self) -> None:
        assert self.agent.stdin is not None
        self.agent.stdin.close()
        try:
            self.agent.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.agent.terminate()

    # --- the agent's lines

    def take(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "control_request":
            self.take_request(message, message["request"])
        elif kind == "assistant":
            for block in message["message"]["content"]:
                self.take_block(block)
        elif kind == "user":
            self.take_user(message["message"]["content"])
        elif kind == "stream_event":
            self.take_event(message["event"])
        elif kind == "result":
            self.unanswered -= {*message.get("user_message_uuids", self.unanswered)}
            self.show_result(message)
        elif kind == "rate_limit_event":
            self.show("rate_limit", status=message["rate_limit_info"]["status"])
        elif kind == "system":
            self.take_system(message, message["subtype"])
        elif kind not in ("control_response", "command_lifecycle"):
            self.show("unknown", name=kind)

    def take_system(self, message: dict[str, Any], subtype: str) -> None:
        if subtype == "session_state_changed":
            self.idle = message["state"] == "idle"
        if subtype == "init":
            self.show("init", session_id=message["session_id"])
        elif subtype not in KNOWN:
            self.show("unknown", name=f"system/{subtype}")

    def take_block(self, block: dict[str, Any]) -> None:
        if block["type"] == "text":
            self.show_text(block["text"])
        elif block["type"] == "thinking":
            self.show("thinking", thinking=block["thinking"])
        elif block["type"] == "tool_use":
            self.show("tool_use", id=block["id"], name=block["name"], input=block["input"])
        else:
            self.show("unknown", name=block["type"])

    def take_user(self, content: Any) -> None:
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if block["type"] == "tool_result":
                result = {"content": block["content"], "is_error": block.get("is_error", False)}
                self.show("tool_result", tool_use_id=block["tool_use_id"], **result)
            else:
                self.show("user", text=block["text"])

    def take_event(self, event: dict[str, Any]) -> None:
        delta = event.get("delta", {})
        if delta.get("type") == "text_delta":
            self.show("delta", text=delta["text"])
        elif delta.get("type", event["type"]) not in KNOWN:
            self.show("unknown", name=delta.get("type", event["type"]))

    def take_request(self, request: dict[str, Any], body: dict[str, Any]) -> None:
        if body["subtype"] == "can_use_tool":
            self.show("permission", tool_name=body["tool_name"], input=body["input"])
            self.answer(request, {"updatedInput": body["input"], **TASK["permission"]})
        elif body["subtype"] == "hook_callback":
            self.show("hook", hook_event_name=body["callback_id"])
            self.answer(request, TASK["hooks"][body["callback_id"]])
        elif body["subtype"] == "mcp_message":
            self.answer(request, {"mcp_response": self.mcp(body["message"])})
        else:
            self.refuse(request)

    def mcp(self, message: dict[str, Any]) -> dict[str, Any]:
        result: Any = {}
        if message["method"] == "initialize":
            info = {"name": "calc", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        elif message["method"] == "tools/list":
            result = {"tools": TOOLS}
        elif message["method"] == "tools/call":
            name, given = message["params"]["name"], message["params"]["arguments"]
            self.show("mcp", name=name, arguments=given)
            text = str(given["a"] + given["b"]) if name == "add" else "out of order"
            result = {"content": [{"type": "text", "text": text}], "isError": name == "fail"}
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}

    # --- output

    def show(self, kind: str, **line: Any) -> None:
        print(json.dumps({"type": kind, **line}), flush=True)
        self.printed.add(kind)

    def show_text(self, text: str) -> None:
        self.show("text", text=text)

    def show_result(self, message: dict[str, Any]) -> None:
        keys = ("subtype", "is_error", "result", "structured_output")
        self.show("result", **{key: message.get(key) for key in keys})

    def say_cut_off(self) -> None:
        self.show("error", message="the agent ended in the middle of a turn")


class StartsNothing(Host):
    def __init__(self) -> None:
        pass

    def run(self) -> int:
        return 0


class EndsWithThree(Host):
    def run(self) -> int:
        return super().run() or 3


class Chatters(Host):
    def show_text(self, text: str) -> None:
        print("A text has come!")
        super().show_text(text)


class WritesToTheAgent(Host):
    def send(self, text: str) -> None:
        self.write(type="hello")
        super().send(text)


class ForgetsVerbose(Host):
    def flags(self) -> list[str]:
        return [flag for flag in super().flags() if flag != "--verbose"]


class ChangesThePrompt(Host):
    def send(self, text: str) -> None:
        super().send(text + " Please.")


class Terminates(Host):
    def leave(self) -> None:
        self.agent.terminate()


class NeverTerminates(Host):
    def leave(self) -> None:
        assert self.agent.stdin is not None
        self.agent.stdin.close()


class ComplainsForNothing(Host):
    def show_result(self, message: dict[str, Any]) -> None:
        super().show_result(message)
        self.show("error", message="something may be wrong")


class SaysTextsTwice(Host):
    def show_text(self, text: str) -> None:
        super().show_text(text)
        super().show_text(text)


class Drops(Host):
    """A host that prints no lines of the types in `types`."""

    types: tuple[str, ...] = ()

    def show(self, kind: str, **line: Any) -> None:
        if kind in self.types:
            self.printed.add(kind)
        else:
            super().show(kind, **line)


class DropsDeltas(Drops):
    types = ("delta",)


class DropsThinking(Drops):
    types = ("thinking",)


class DropsUsers(Drops):
    types = ("user",)


class DropsRateLimits(Drops):
    types = ("rate_limit",)


class DropsUnknown(Drops):
    types = ("unknown",)


class DropsErrors(Drops):
    types = ("error",)


class DropsHalves(Host):
    """A host that drops lone surrogates, as an encoder with ``errors="ignore"`` does."""

    def show(self, kind: str, **line: Any) -> None:
        if kind == self.kind:
            line["text"] = line["text"].encode(errors="ignore").decode()
        super().show(kind, **line)

    kind = "delta"


class DropsHalvesOfTexts(DropsHalves):
    kind = "text"


class ForgetsInputs(Host):
    def show(self, kind: str, **line: Any) -> None:
        super().show(kind, **({**line, "input": {}} if kind == "tool_use" else line))


class MixesUpResults(Host):
    def show(self, kind: str, **line: Any) -> None:
        super().show(kind, **({**line, "tool_use_id": "toolu_other"} if kind == "tool_result" else line))


class NamesAnotherSession(Host):
    def show(self, kind: str, **line: Any) -> None:
        super().show(kind, **({"session_id": "other"} if kind == "init" else line))


class ForgetsOutput(Host):
    def show_result(self, message: dict[str, Any]) -> None:
        super().show_result({**message, "structured_output": None})


class InventsAResult(Host):
    def say_cut_off(self) -> None:
        super().say_cut_off()
        self.show_result({"subtype": "success", "is_error": False})


class CallsTwice(Host):
    def show(self, kind: str, **line: Any) -> None:
        super().show(kind, **line)
        if kind == "permission":
            super().show(kind, **line)


class AnswersTwice(Host):
    def answer(self, request: dict[str, Any], payload: Any) -> None:
        super().answer(request, payload)
        super().answer(request, payload)


class AgreesToAll(Host):
    def refuse(self, request: dict[str, Any]) -> None:
        self.answer(request, {})


class InterruptsTwice(Host):
    def interrupt(self) -> None:
        super().interrupt()
        super().interrupt()


class ChangesTheSchema(Host):
    def schema(self) -> Any:
        return {"type": "object"}


class Hangs(Host):
    def leave(self) -> None:
        """Leave the agent's input open, so that the host and the agent wait for each other forever."""
        open(os.environ["HANGS"], "w").close()


#: Class -> the scenario in which the host breaks exactly one rule, and the name of this rule.
BAD = {
    StartsNothing: ("prompt", "starts"),
    EndsWithThree: ("prompt", "ends"),
    Chatters: ("prompt", "lines"),
    WritesToTheAgent: ("prompt", "wire"),
    ForgetsVerbose: ("prompt", "flags"),
    ChangesThePrompt: ("thinking", "prompts"),
    Terminates: ("prompt", "leaves"),
    NeverTerminates: ("will_not_end", "leaves"),
    ComplainsForNothing: ("prompt", "no_error"),
    SaysTextsTwice: ("deltas", "text"),
    DropsDeltas: ("deltas", "delta"),
    DropsHalves: ("half_emoji", "delta"),
    DropsHalvesOfTexts: ("half_emoji", "text"),
    DropsThinking: ("thinking", "thinking"),
    ForgetsInputs: ("parallel_tools", "tool_use"),
    MixesUpResults: ("parallel_tools", "tool_result"),
    DropsUsers: ("resume_replays", "user"),
    NamesAnotherSession: ("resume_replays", "init"),
    ForgetsOutput: ("structured", "result"),
    InventsAResult: ("exit_1", "result"),
    DropsErrors: ("exit_0", "error"),
    DropsRateLimits: ("rate_limit", "rate_limit"),
    DropsUnknown: ("unknown_type", "unknown"),
    CallsTwice: ("permission_allowed", "callback"),
    AnswersTwice: ("permission_denied", "answer"),
    AgreesToAll: ("unknown_request", "answer"),
    InterruptsTwice: ("interrupt_text", "interrupt"),
    ChangesTheSchema: ("structured_failure", "schema"),
}

if __name__ == "__main__":
    sys.exit(globals()[sys.argv[1] if sys.argv[1:] else "Host"]().run())
