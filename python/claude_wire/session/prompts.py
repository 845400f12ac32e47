"""Send a session's prompts, and return each prompt's result to its caller.

:mod:`claude_wire.protocol.run` tracks the state of each prompt, such as answered, cancelled or refused.
"""

from __future__ import annotations

import logging
import uuid as uuids
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from anyio import current_time

from claude_wire.codec.decoder import decode
from claude_wire.errors import (
    ClaudeWireError,
    PromptAnsweredError,
    PromptCancelledError,
    PromptError,
    SessionEndedError,
)
from claude_wire.messages import ContentBlock, ResultMessage, UserMessage
from claude_wire.messages.base import Wire
from claude_wire.protocol.run import State

if TYPE_CHECKING:
    from claude_wire.protocol.run import SentPrompt
    from claude_wire.session.host_hooks import HostHooks
    from claude_wire.session.iterators import Until, Wait
    from claude_wire.session.reading import Reading
    from claude_wire.session.sending import Sender

_log = logging.getLogger("claude_wire")

#: What a prompt can be: text, content blocks or a whole message.
Prompt: TypeAlias = "str | Sequence[ContentBlock] | UserMessage"


def message_of(prompt: Prompt, uuid: str | None = None, session_id: str = "") -> UserMessage:
    """Return the message for a prompt. A prompt without a uuid gets a random uuid, because results refer to it.

    Raises:
        TypeError: the prompt is not text, content blocks or a :class:`UserMessage`.
        ValueError: the text is empty or blank. The API would refuse the prompt.
    """
    if isinstance(prompt, UserMessage):
        if prompt.uuid and uuid is None:
            return prompt
        return msgspec.structs.replace(prompt, uuid=str(uuids.uuid4()) if uuid is None else uuid)
    is_text = isinstance(prompt, str)
    if isinstance(prompt, str) and not prompt.strip():
        raise ValueError("the prompt is empty")
    items: tuple[object, ...] = tuple(prompt) if isinstance(prompt, Sequence) and not is_text else ()
    if not is_text and not (items and all(isinstance(item, (Wire, dict)) for item in items)):
        kind = type(prompt).__name__
        raise TypeError(f"a prompt is text, content blocks such as [TextBlock(...)], or a UserMessage, not {kind}")
    return UserMessage.of(prompt, uuid=uuid or str(uuids.uuid4()), session_id=session_id)


class Prompts:
    """Sends prompts, and waits for a prompt's result.

    Args:
        argv: the process's command line; empty for a stream that is not a process.
        verbatim: mark each prompt as ``client_composed``, unless the prompt sets this field itself.
    """

    def __init__(
        self,
        sender: Sender,
        reading: Reading,
        hooks: HostHooks | None,
        encode: Callable[[Any], bytes],
        argv: Sequence[str],
        *,
        verbatim: bool,
    ) -> None:
        self._hooks = hooks
        self._verbatim = verbatim
        self._encode = encode
        self._sender = sender
        self._reading = reading
        self._run = reading.run
        #: True if the CLI has a JSON schema for results: each result must then have ``structured_output``.
        self.structured: bool = any(word.partition("=")[0] == "--json-schema" for word in argv)

    async def query(
        self, prompt: Prompt | AsyncIterable[Prompt], uuid: str | None, session_id: str, *, needs_uuid: bool
    ) -> None:
        """Send a prompt, or each prompt in an iterable. For the other arguments, see :meth:`Session.query`.

        Args:
            needs_uuid: True if a :class:`UserMessage` without a uuid gets a random one.
        """
        if not isinstance(prompt, AsyncIterable):
            if needs_uuid or uuid is not None or not isinstance(prompt, UserMessage):
                prompt = message_of(prompt, uuid, session_id)
            await self.send(prompt)
            return
        if uuid is not None:
            raise TypeError("uuid is for a single prompt, not for an iterable of prompts")
        async for one in prompt:
            await self.query(one, None, session_id, needs_uuid=needs_uuid)

    async def send(self, prompt: UserMessage) -> SentPrompt | None:
        """Send a prompt. Return None if the CLI will not start a turn for it because the uuid was used before.

        Raises:
            PromptError: a hook that the host calls blocked the prompt.
        """
        if self._hooks is not None:
            await self._hooks.before_prompt(prompt)
        if self._verbatim and prompt.client_composed is None:
            prompt = msgspec.structs.replace(prompt, client_composed=True)
        line = self._encode(prompt)
        has_begun = False
        # Register the prompt before it is sent: another task may read its result before this task continues.
        sent = self._run.ask(prompt.uuid, current_time())

        def begun() -> None:
            nonlocal has_begun, sent
            has_begun = True
            if sent is None:  # an earlier prompt with this uuid may have failed in the meantime
                sent = self._run.ask(prompt.uuid, current_time())

        try:
            await self._sender.send(line, begun)
            _log.debug("prompt %s sent", prompt.uuid)
        except BaseException as error:
            # Cancelling this task after the first byte does not truncate the line: the prompt then counts as sent.
            if sent is not None and (isinstance(error, Exception) or not has_begun):
                self._run.take_back(sent)
            raise
        return sent

    async def send_again(self, lines: Iterable[bytes]) -> None:
        """Resend the lines (prompts and answers) that an earlier connection may not have delivered."""
        for line in lines:
            message = decode(line)
            if isinstance(message, UserMessage):
                await self.send(message)
            else:
                await self._sender.send(line, is_answer=True)

    async def ask(self, prompt: UserMessage, wait: Wait, until: Until) -> ResultMessage:
        """Send a prompt with a uuid, and skip all messages until the prompt ends. One task at a time may call this.

        Raises:
            HandleError, ValueError, TurnError, PromptError, SessionEndedError: see :meth:`Session.ask`.
        """
        self._sender.require_open()
        if self._run.had(prompt.uuid):
            raise ValueError("a prompt with this uuid was sent before; the CLI does not answer it again")
        with self._reading.reserved():
            sent = await self.send(prompt)
            assert sent is not None
            try:
                await self._reading.skip_to_end_of_prompt(sent, wait)
            except StopAsyncIteration:
                raise SessionEndedError("query", "the output ended before the result") from None
            result = _result_of(sent)
            wait.end, wait.structured = None, self.structured
            wait.note(result, self._run)
            if until == "run":
                await self._skip_to_end_of_run(wait)
        if wait.error is not None:
            raise wait.error
        return wait.result or result

    async def _skip_to_end_of_run(self, wait: Wait) -> None:
        """Wait for the prompt's background work. If there are several errors, raise the first.

        Raises:
            TurnError, SessionEndedError: see :meth:`Session.ask`.
        """
        try:
            await self._reading.skip_to_end_of_run(wait)
        except StopAsyncIteration:
            working = len(self._run.background.subagents)
            if wait.error is None and working:
                problem = f"the output ended while {working} of its subagents worked in the background"
                raise SessionEndedError("query", problem) from None
        except ClaudeWireError as error:
            raise (wait.error or error) from (None if wait.error is None else error)


def _result_of(prompt: SentPrompt) -> ResultMessage:
    """Return the result that answers a prompt.

    Raises:
        PromptError: no turn answers the prompt.
    """
    uuid = prompt.uuid
    if not prompt.ended:
        raise PromptError(uuid, "the CLI was idle for the whole ceiling, and no turn answered the prompt")
    if prompt.refusal:
        raise PromptError(uuid, f"the prompt was not delivered: {prompt.refusal}")
    if prompt.state is State.REPEATED:
        raise PromptAnsweredError(
            uuid, "this prompt was answered before the session was resumed; a new uuid asks again"
        )
    if prompt.result is None:
        raise PromptCancelledError(uuid, "the CLI removed this prompt from its queue")
    return prompt.result
