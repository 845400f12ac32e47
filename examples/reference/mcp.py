import anyio

from claude_wire import ClaudeOptions, ask
from claude_wire.integrations.mcp import InProcessMcpServer

try:
    from mcp.server import MCPServer
except ImportError:  # mcp 1
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("calc", log_level="ERROR")


@server.tool()
def add(a: float, b: float) -> float:
    return a + b


async def main():
    options = ClaudeOptions(allowed_tools=["mcp__calc__add"])
    result = await ask("How much is 1.5 + 2?", options, mcp_servers={"calc": InProcessMcpServer(server)})
    print(result.result)  # sum done


anyio.run(main)
