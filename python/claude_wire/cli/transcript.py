"""Messages as a transcript that people read while it happens.

Knows messages and a console; not where messages come from. Text appears as its deltas come; the finished blocks that
repeat it are not shown again.
"""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from claude_wire.cli.printable import one_line, printable
from claude_wire.messages import (
    AssistantMessage,
    CanUseToolRequest,
    ContentBlock,
    ContentBlockDeltaEvent,
    ControlRequest,
    HookCallbackRequest,
    InitMessage,
    InvalidLine,
    Message,
    RedactedThinkingBlock,
    ResultMessage,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    UserMessage,
    UserPromptSubmitHookInput,
)

__all__ = ["Transcript"]

#: Prompts, inputs and results of tools are cut to this many characters.
DETAIL_CHARS = 100


class Transcript:
    """Shows messages one after another on a console, which may be a terminal or not."""

    def __init__(self, console: Console) -> None:
        self._console = console
        #: Whether the cursor stands behind streamed text, and in which style that was written.
        self._open: str | None = None
        #: What the header said last: it comes with every turn, mostly unchanged.
        self._header: tuple[str | None, str | None] | None = None
        #: Ids of the API messages whose text was shown while it streamed.
        self._streamed: set[str | None] = set()

    def show(self, message: Message | InvalidLine) -> None:
        """Show what a message adds; many add nothing."""
        match message:
            case StreamEvent(event=ContentBlockDeltaEvent(delta=TextDelta(text=text))):
                self._streamed.add(message.api_message_id)
                self._stream(text, "")
            case StreamEvent(event=ContentBlockDeltaEvent(delta=ThinkingDelta(thinking=thinking))):
                self._streamed.add(message.api_message_id)
                self._stream(thinking, "dim italic")
            case InitMessage():
                self._show_header(message)
            case AssistantMessage():
                for block in message.content:
                    self._show_block(block, message.message.id in self._streamed)
            case UserMessage():
                for result in message.tool_results:
                    self._show_tool_result(result)
                if message.text:
                    self._line("> ", one_line(message.text, DETAIL_CHARS), "bold")
            case ControlRequest(request=HookCallbackRequest(input=UserPromptSubmitHookInput(prompt=prompt))):
                # The CLI does not repeat the prompts that it reads, but a hook is told.
                self._line("\n> ", one_line(prompt, DETAIL_CHARS), "bold")
            case ControlRequest(request=CanUseToolRequest(tool_name=name)):
                self._line("? ", f"the CLI asks the host: may {one_line(name)} run?", "yellow")
            case ResultMessage():
                self._show_result(message)
            case InvalidLine():
                self._line("! ", f"line {message.line_number} is invalid: {message.reason}", "bold red")
            case _:
                pass

    def close(self) -> None:
        """End a line of text that is still open."""
        if self._open is not None:
            self._console.print()
            self._open = None

    def _stream(self, text: str, style: str) -> None:
        if self._open != style:
            self.close()
        self._open = style
        self._console.print(Text(printable(text), style), end="", soft_wrap=True)

    def _line(self, mark: str, text: str, style: str) -> None:
        self.close()
        self._console.print(Text(mark + text, style), soft_wrap=True)

    def _show_header(self, init: InitMessage) -> None:
        header = (init.model, init.cwd)
        if header != self._header:
            self._header = header
            version = f", CLI {init.claude_code_version}" if init.claude_code_version else ""
            self._line("* ", printable(f"{init.model} in {init.cwd}{version}", keep=""), "bold cyan")

    def _show_block(self, block: ContentBlock, streamed: bool) -> None:
        match block:
            case ToolUseBlock(name=name, input=arguments):
                self._line("+ ", f"{one_line(name)} {_json(arguments)}", "cyan")
            case TextBlock(text=text) if not streamed:
                self._line("", printable(text), "")
            case ThinkingBlock(thinking=thinking) if not streamed:
                self._line("", printable(thinking), "dim italic")
            case RedactedThinkingBlock():
                self._line("", "(redacted thinking)", "dim italic")
            case _:
                pass

    def _show_tool_result(self, result: ToolResultBlock) -> None:
        content = result.content
        if isinstance(content, list):
            content = "".join(block.text if isinstance(block, TextBlock) else f"[{_kind(block)}]" for block in content)
        self._line("  = ", one_line(content or "", DETAIL_CHARS), "red" if result.is_error else "green")

    def _show_result(self, result: ResultMessage) -> None:
        facts = [
            "ok" if result.ok else f"not ok ({one_line(result.terminal_reason or result.subtype)})",
            f"${result.total_cost_usd:.6f} in this session" if result.total_cost_usd is not None else "",
            f"turns: {result.num_turns}" if result.num_turns is not None else "",
            f"{result.duration_ms / 1000:.2f} s" if result.duration_ms is not None else "",
            f"{result.duration_api_ms / 1000:.2f} s in the API" if result.duration_api_ms is not None else "",
        ]
        self._line("= ", ", ".join(fact for fact in facts if fact), "bold green" if result.ok else "bold red")


def _json(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), DETAIL_CHARS)


def _kind(block: ContentBlock) -> str:
    return one_line(block.type or "?") if isinstance(block, UnknownBlock) else type(block).__name__
