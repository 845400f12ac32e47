"""The class ``Turn``. An agent's function uses it to write text, use tools and ask the host.

The module ``speech`` writes the messages for these calls.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from anyio import from_thread
from anyio.lowlevel import checkpoint

from claude_wire.agent.outcome import content_of
from claude_wire.agent.questions import Decision, Hooked, McpResult, ToolOutcome
from claude_wire.agent.runtime import Runtime
from claude_wire.agent.session import AgentSession, McpConnection, Spent, TurnRecord
from claude_wire.agent.speech import Speech
from claude_wire.messages import (
    ContentBlock,
    ElicitationRequest,
    ElicitationResponse,
    Message,
    ModelUsage,
    PermissionDenial,
    PermissionUpdate,
    RequestUserDialogRequest,
    ResultMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    ToolUseBlock,
    UserDialogCancelled,
    UserDialogResult,
    UserMessage,
)
from claude_wire.messages.hooks.events import HOOK_EVENTS, hook_event
from claude_wire.support.arguments import nearest, require_int, shown, type_of

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

#: The answer to each question that a turn asks after it was interrupted or ended. The host does not get the question.
OVER = "The turn is over."
#: A turn lets other tasks run, such as the task that reads an interrupt, after it wrote this many lines.
LINES_AT_ONCE = 64


class Turn:
    """The argument of the author's function: a prompt, and methods to answer the prompt.

    Lines are written in call order. After the turn was interrupted or ended, messages are dropped, and questions are
    refused without asking the host.
    """

    def __init__(
        self, service: Runtime, record: TurnRecord, parent: ToolUseBlock | None = None, outer: Turn | None = None
    ) -> None:
        self._service = service
        self._protocol = service.protocol
        # The service also uses `record` (the turn's state in the protocol), `speech`, `spent` and `result`.
        self.record: TurnRecord = record
        self._parent = parent
        self.speech: Speech = Speech(service.protocol, record, None if parent is None else parent.id)
        self.spent: Spent = Spent() if outer is None else outer.spent
        self.result: ResultMessage | None = None
        self._lines = 0
        self._subagents: dict[str, Turn] = {}
        #: The agent's session.
        self.session: AgentSession = service.session
        #: Texts that the host's ``UserPromptSubmit`` hooks add to the prompt for the model.
        self.hook_context: list[str] = []

    def __repr__(self) -> str:
        state = "under way" if self.record.stopped is None else "stopped"
        return f"<Turn {state}: {len(self.text)} characters asked>"

    @property
    def prompt(self) -> UserMessage:
        """The prompt to answer. Prompts that waited together become one prompt, with line feeds between their texts."""
        return self.record.prompt

    @property
    def text(self) -> str:
        """The prompt's text."""
        return self.record.prompt.text

    @property
    def uuid(self) -> str | None:
        """The prompt's uuid, or the uuid of the last of several prompts. None if the prompt has no uuid."""
        return self.record.prompt.uuid

    @property
    def context(self) -> list[UserMessage]:
        """Earlier prompts for which the host wanted no answer (``shouldQuery`` false)."""
        return list(self.record.context)

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema for the structured output; None if the host did not set one."""
        return self.session.schema

    @property
    def cancelled(self) -> bool:
        """True if the turn was interrupted, or is over. A function in a thread should check this now and then."""
        return not self._ready()

    # --- text and messages

    async def say(self, text: str) -> None:
        """Write text as one block."""
        _require("say()", text, "a str", str)
        if self._ready():
            self.speech.finish_block()
            self.speech.add(text)
            self.speech.finish_block()
        await self._written()

    async def stream(self, text: str | AsyncIterable[str]) -> None:
        """Write text piece by piece. Successive pieces form one block.

        Each piece is a ``stream_event``, if the host wants stream events. The whole block is written when an iterable
        ends, before the next message of another kind, and at the end of the turn.

        Args:
            text: one piece, or an asynchronous iterable of pieces. An iterable is closed if the turn is interrupted.
        """
        if isinstance(text, str):
            if self._ready():
                self.speech.add(text)
                self._lines += 1
                if self._lines < LINES_AT_ONCE and self._service.flush():
                    return
            await self._written()
            return
        if not isinstance(text, AsyncIterable):
            raise TypeError(f"stream() takes a str or an async iterable of str, not {type_of(text)}")
        pieces = aiter(text)
        try:
            async for piece in pieces:
                _require("stream()", piece, "a str", str)
                if self._ready():
                    self.speech.add(piece)
                await self._written()
        finally:
            for one in {id(one): one for one in (pieces, text)}.values():
                close = getattr(one, "aclose", None)  # generators have this method
                if close is not None:
                    await close()
        if self._ready():
            self.speech.finish_block()
        await self._written()

    async def thinking(self, text: str, *, signature: str = "") -> None:
        """Write the model's thinking as one block."""
        _require("thinking()", text, "a str", str)
        if self._ready():
            self.speech.finish_block()
            self.speech.add(text, "thinking")
            self.speech.finish_block(signature)
        await self._written()

    async def emit(self, message: Message | dict[str, Any]) -> None:
        """Write any message, after all earlier texts. No ids are added: set the ids that the message needs."""
        if self._ready():
            self.speech.finish_block()
            self._protocol.send(message)
        await self._written()

    async def block(self, block: ContentBlock) -> None:
        """Write a whole content block of any kind."""
        if self._ready():
            self.speech.block(block)
        await self._written()

    # --- tools

    async def use_tool(self, name: str, input: Mapping[str, Any] | None = None) -> ToolUseBlock:
        """Write that the model uses a tool. Then call :meth:`tool_result` with the returned block."""
        if not isinstance(input, (Mapping, type(None))):
            raise TypeError(f"the input of a tool must be a dict, not {type_of(input)}")
        use_id = f"toolu_{self._protocol.new_uuid().replace('-', '')}"
        use = ToolUseBlock(id=use_id, name=name, input=dict(input or {}))
        if self._ready():
            self.speech.block(use)
        await self._written()
        return use

    async def allowed(self, use: ToolUseBlock, suggestions: list[PermissionUpdate] | None = None) -> Decision:
        """Decide whether the agent may use the tool, by a rule, by the permission mode, or by asking the host.

        Args:
            suggestions: permission updates that the host may grant with its answer, to avoid further questions:
                ``[SetMode(mode="acceptEdits", destination="session")]``.

        Returns:
            The decision: ``.ok``; if not ok, ``.message`` for the model; ``.input``, which the host may have changed.
        """
        if self._ready():
            self.speech.close_message()
        await self._written()
        if not self._ready():
            return Decision(False, OVER, use.input)
        decision = await self._service.questions.permission(use.name, use.input, use.id, suggestions)
        if not decision.ok:
            denial = PermissionDenial(tool_name=use.name, tool_use_id=use.id, tool_input=use.input)
            self.spent.denials.append(denial)
        return decision

    async def tool_result(
        self, use: ToolUseBlock, content: str | list[Any], is_error: bool = False, *, structured: Any = None
    ) -> None:
        """Write a tool's result.

        Args:
            content: the result for the model: text or blocks.
            structured: the result for programs: any JSON.
        """
        if not isinstance(use, ToolUseBlock):
            raise TypeError(f"tool_result() takes the value that use_tool() returned, not {type_of(use)}")
        if self._ready():
            subagent = self._subagents.pop(use.id, None)
            if subagent is not None:
                subagent._end_task("failed" if is_error else "completed", content if isinstance(content, str) else None)
            is_denied = is_error and any(denial.tool_use_id == use.id for denial in self.spent.denials)
            self.speech.tool_result(use.id, content, is_error, structured, is_denied=is_denied)
        await self._written()

    async def run_tool(
        self, name: str, input: Mapping[str, Any] | None = None, function: Callable[..., Any] | None = None
    ) -> ToolOutcome:
        """Run the hook ``PreToolUse``, check the permission, call the function, run ``PostToolUse``, write the result.

        Args:
            name: the tool's name. ``mcp__SERVER__TOOL`` is a tool of an MCP server in the host, and needs no function.
            input: the tool's input.
            function: called with the input, which the host may have changed. It returns text, blocks or any JSON. If
                it raises, the tool failed, and the turn continues. A plain function runs in a thread.
        """
        use = await self.use_tool(name, input)
        about = {"tool_name": name, "tool_input": use.input}
        hooked = await self.hook("PreToolUse", tool_use_id=use.id, **about)
        given: dict[str, Any] = use.input if hooked.updated_input is None else hooked.updated_input
        changed = ToolUseBlock(id=use.id, name=name, input=given)
        if hooked.refusal is not None:
            self.spent.denials.append(PermissionDenial(tool_name=name, tool_use_id=use.id, tool_input=given))
            return await self._refused(changed, hooked.refusal)
        if hooked.decision != "allow":
            decision = await self.allowed(changed)
            if not decision.ok:
                outcome = await self._refused(changed, decision.message)
                if decision.interrupt:
                    await self._interrupt()
                return outcome
            changed = ToolUseBlock(id=use.id, name=name, input=decision.input)
        structured: Any = None
        is_error = False
        content: str | list[Any]
        if function is None:
            result = await self._call_named(changed)
            content, is_error, structured = result.content, result.is_error, result.structured
        else:
            try:
                returned = await self._service.call(function, changed.input)
                content, structured = content_of(returned)
            except Exception as error:
                content, is_error = f"{type(error).__name__}: {error}", True
        about["tool_input"] = changed.input
        if is_error:
            after = await self.hook("PostToolUseFailure", tool_use_id=use.id, error=str(content), **about)
        else:
            response = content if structured is None else structured
            after = await self.hook("PostToolUse", tool_use_id=use.id, tool_response=response, **about)
        await self.tool_result(changed, content, is_error, structured=structured)
        if hooked.stop or after.stop:
            await self._interrupt()
        return ToolOutcome(changed, content, is_error, True, [*hooked.context, *after.context])

    async def hook(self, event: str, *, tool_use_id: str | None = None, **fields: Any) -> Hooked:
        """Call the host's hooks for an event.

        Args:
            event: ``PreToolUse`` or ``pre-tool-use``, and so on.
            fields: the fields of the hook input for this event, such as ``tool_name=`` and ``tool_input=``.

        Raises:
            ValueError: the protocol has no such event.
        """
        _require("hook()", event, "a str", str)
        known = hook_event(event)
        if known is None:
            raise ValueError(f"hook(): there is no event {shown(event)}{nearest(event, HOOK_EVENTS)}")
        if self._ready():
            self.speech.finish_block()
        await self._written()
        if not self._ready():
            return Hooked()
        given = {**fields, "tool_use_id": tool_use_id} if tool_use_id is not None else fields
        return await self._service.questions.hooks(known, given, tool_use_id)

    async def call_mcp(self, server: str, tool: str, arguments: Mapping[str, Any] | None = None) -> McpResult:
        """Call a tool of an MCP server in the host, without writing messages about the tool use.

        Raises:
            KeyError: the host has no such server.
        """
        if server not in self.session.mcp_servers:
            raise KeyError(f"the host has no MCP server {server!r}, but {sorted(self.session.mcp_servers)}")
        return await self._call_mcp(self.session.mcp_servers[server], tool, dict(arguments or {}), None)

    async def elicit(
        self, message: str, schema: dict[str, Any] | None = None, *, server: str = "agent"
    ) -> ElicitationResponse:
        """Ask the host's user a question. The answer is ``decline`` if the host cannot ask.

        Args:
            schema: JSON schema of the form that the host shows to the user.
            server: the name of the MCP server that asks.
        """
        request = ElicitationRequest(mcp_server_name=server, message=message, mode="form", requested_schema=schema)
        return await self._service.questions.elicit(request) if self._ready() else ElicitationResponse(action="cancel")

    async def show_dialog(
        self, kind: str, payload: Mapping[str, Any], *, use: ToolUseBlock | None = None
    ) -> UserDialogResult:
        """Let the host show a dialog, and wait for the user's choice.

        If the host has not listed the kind, the host is not asked, and the answer is
        :class:`~claude_wire.messages.UserDialogCancelled`.

        Args:
            kind: one of the ``supportedDialogKinds`` in the host's ``initialize``.
            payload: the dialog's content. The keys depend on the kind.
            use: the tool use that needs the dialog; None if the dialog belongs to no tool use.
        """
        id = None if use is None else use.id
        request = RequestUserDialogRequest(dialog_kind=kind, payload=dict(payload), tool_use_id=id)
        return await self._service.questions.dialog(request) if self._ready() else UserDialogCancelled()

    async def injected(self) -> list[UserMessage]:
        """Add the waiting prompts to this turn, and return them. Call this before each model call."""
        prompts: list[UserMessage] = []
        if self._ready():
            self.speech.close_message()
            prompts = self._protocol.inject()
            self._service.moved()
        await self._written()
        return prompts

    # --- costs and subagents

    def usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost_usd: float = 0.0,
        model: str | None = None,
        cache_read_input_tokens: int = 0,
        cache_creation_input_tokens: int = 0,
    ) -> None:
        """Add to the token counts and costs that the turn's result reports. Costs are in US dollars.

        The tokens are also added to the open message of the model, or to the next message. So call this before saying
        the text of the model's answer: lines that are already written do not change.

        Raises:
            TypeError: a count is not an int, the cost not a number, or the model not a str.
            ValueError: a count is negative.
        """
        counts = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cache_read_input_tokens": cache_read_input_tokens,
            "cache_creation_input_tokens": cache_creation_input_tokens,
        }
        for name, count in counts.items():
            require_int(f"{name} of usage()", count, 0)
        _require("usage(cost_usd=)", cost_usd, "a number", int, float)
        _require("usage(model=)", model, "a str", str, type(None))
        used = ModelUsage(
            inputTokens=input_tokens,
            outputTokens=output_tokens,
            cacheReadInputTokens=cache_read_input_tokens,
            cacheCreationInputTokens=cache_creation_input_tokens,
            costUSD=cost_usd,
        )
        self.spent.add(used, model or self.session.model)
        self.speech.add_usage(counts)

    def subagent(self, use: ToolUseBlock, *, description: str = "", kind: str = "general-purpose") -> Turn:
        """Start a subagent for a tool use: a turn whose messages have ``parent_tool_use_id``.

        The subagent ends with the block (``async with turn.subagent(use) as helper:``) or with :meth:`tool_result`.
        """
        task = Turn(self._service, self.record, use, self)
        self._subagents[use.id] = task
        if self._ready():
            self.speech.close_message()
            message = TaskStartedMessage(
                **task._task,
                description=description or use.name,
                subagent_type=kind,
                task_type="local_agent",
                is_backgrounded=False,
            )
            self._protocol.send(message)
            self._service.flush()
        return task

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._ready():
            self._end_task("completed" if kind is None else "failed")

    @property
    def _task(self) -> dict[str, Any]:
        assert self._parent is not None
        ids = {"task_id": f"task_{self._parent.id}", "tool_use_id": self._parent.id}
        return {**ids, "uuid": self._protocol.new_uuid(), "session_id": self.record.session_id}

    def _end_task(self, status: str, summary: str | None = None) -> None:
        """Write once that this subagent ended. The default summary is the subagent's last text."""
        if self._parent is not None:
            self.speech.close_message()
            summary = self.speech.last_text if summary is None else summary
            message = TaskNotificationMessage(**self._task, status=status, output_file="", summary=summary)
            self._protocol.send(message)
            self._parent = None

    def finished(self) -> str:
        """End open subagents and the open message. Return the last text."""
        if self._ready():
            for subagent in self._subagents.values():
                subagent._end_task("completed")
            self._subagents.clear()
            self.speech.close_message()
        return self.speech.last_text

    def abort(self, *, by_user: bool) -> str:
        """Write the end of an interrupted turn, subagents first. Return the result's ``terminal_reason``."""
        for subagent in self._subagents.values():
            subagent.abort(by_user=False)
            subagent._end_task("stopped")
        return self.speech.abort(by_user=by_user)

    def _ready(self) -> bool:
        """True while the turn may write messages; False after an interrupt, and after its end."""
        record = self.record
        return record.stopped is None and self._protocol.turn is record

    async def _written(self) -> None:
        """Write as much as possible. Wait if too much is unwritten; let other tasks run every 64 lines."""
        self._lines += 1
        service = self._service
        service.flush()
        if service.crowded:
            await service.until_uncrowded()
        elif self._lines >= LINES_AT_ONCE or self.record.stopped is not None:
            self._lines = 0
            await checkpoint()

    async def _interrupt(self) -> None:
        """Interrupt this turn, because the host's answer requests an interrupt."""
        self._service.interrupt_turn(self.record)
        await checkpoint()

    async def _refused(self, use: ToolUseBlock, why: str) -> ToolOutcome:
        await self.tool_result(use, why, True, structured=f"Error: {why}")
        return ToolOutcome(use, why, True, False)

    async def _call_named(self, use: ToolUseBlock) -> McpResult:
        found = self.session.find_mcp_tool(use.name)
        if found is None:
            raise TypeError(f"run_tool() needs a function: {use.name!r} is not a tool of an MCP server in the host")
        return await self._call_mcp(*found, use.input, use.id)

    async def _call_mcp(
        self, server: McpConnection, tool: str, arguments: dict[str, Any], use_id: str | None
    ) -> McpResult:
        if not self._ready():
            return McpResult([{"type": "text", "text": OVER}], True)
        return await self._service.questions.call(server, tool, arguments, use_id)


class PlainTurn:
    """A turn for a plain function, which runs in a thread and calls the turn's methods without ``await``."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._turn, name)
        if not inspect.ismethod(value):
            return value
        run: Any = from_thread.run if inspect.iscoroutinefunction(value) else from_thread.run_sync
        method = cast("Callable[..., Any]", value)

        def call(*args: Any, **kwargs: Any) -> Any:
            returned = run(partial(method, *args, **kwargs))
            return PlainTurn(returned) if isinstance(returned, Turn) else returned

        return call

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: Any) -> None:
        from_thread.run(self._turn.__aexit__, *raised)


def _require(what: str, value: object, takes: str, *types: type) -> None:
    if not isinstance(value, types):
        raise TypeError(f"{what} takes {takes}, not {type_of(value)}")
