"""The session benches' child process. It replaces the CLI: it answers requests and runs commands from prompts.

``blocks N`` writes N recorded lines in writes of 64 KiB, ``lines N`` in one write per line. ``ask N`` asks for a
permission N times and waits for each answer. Each command ends with a result. The result's text is a
JSON list: for each question of ``ask``, the nanoseconds from writing the question to reading its answer. The CLI's
flags are ignored.
"""

import json
import os
import sys
import time

from writer import made, write

QUESTION = (
    b'{"type":"control_request","request_id":"%d","request":{"subtype":"can_use_tool","tool_name":"Bash",'
    b'"display_name":"Bash","input":{"command":"touch a.txt && echo made","description":"Make a"},'
    b'"description":"Make a","permission_suggestions":[],"tool_use_id":"toolu_%d"}}\n'
)
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "duration_ms": 1,
    "duration_api_ms": 1,
    "num_turns": 1,
    "session_id": "s",
    "total_cost_usd": 0.0,
    "usage": {},
    "uuid": "u",
}
INITIALIZED = {
    "commands": [],
    "agents": [],
    "output_style": "default",
    "available_output_styles": [],
    "models": [],
    "account": {},
}


def say(**message: object) -> None:
    write(json.dumps(message).encode() + b"\n")


def main(path: str) -> None:
    def ask(count: int) -> list[int]:
        found = []
        for number in range(count):
            question = QUESTION % (number, number)
            begin = time.perf_counter_ns()
            write(question)
            while b'"control_response"' not in sys.stdin.buffer.readline():
                pass
            found.append(time.perf_counter_ns() - begin)
        return found

    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message["type"] == "control_request":
            answer = INITIALIZED if message["request"]["subtype"] == "initialize" else {}
            response = {"subtype": "success", "request_id": message["request_id"], "response": answer}
            say(type="control_response", response=response)
        elif message["type"] == "user":
            content = message["message"]["content"]
            how, count = (content if isinstance(content, str) else content[0]["text"]).split()
            taken = ask(int(count)) if how == "ask" else []
            for piece in made(path, how, int(count)) if how != "ask" else ():
                write(piece)
            say(**RESULT, result=json.dumps(taken))


if __name__ == "__main__":
    if sys.argv[-1] in ("-v", "--version"):
        print("2.1.331 (Claude Code)")
    else:
        main(sys.argv[1] if sys.argv[1:] and not sys.argv[1].startswith("-") else os.environ["LINES_FILE"])
