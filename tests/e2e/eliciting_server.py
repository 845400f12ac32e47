"""An MCP server that the CLI starts: its one tool asks the user for a name, and returns what was answered.

It speaks JSON-RPC, one object a line, on standard input and output.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    calling = None
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "asker", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
            send({"id": message["id"], "result": result})
        elif method == "tools/list":
            tool = {"name": "who", "description": "Ask who it is", "inputSchema": {"type": "object", "properties": {}}}
            send({"id": message["id"], "result": {"tools": [tool]}})
        elif method == "tools/call":
            calling = message["id"]
            params = {"message": "Who is there?", "requestedSchema": SCHEMA}
            send({"id": "ask", "method": "elicitation/create", "params": params})
        elif message.get("id") == "ask":
            answer = json.dumps(message.get("result", message.get("error")), sort_keys=True)
            send({"id": calling, "result": {"content": [{"type": "text", "text": answer}]}})
        elif "id" in message:
            send({"id": message["id"], "result": {}})


if __name__ == "__main__":
    main()
