"""Calls and results of tools that the API runs itself, between two blocks of one model message.

They need no answer from the host. Tools that the CLI runs are ``tool_use`` and ``tool_result`` blocks in
:mod:`claude_wire.messages.blocks.content`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages.base import Wire
from claude_wire.messages.blocks.media import DocumentBlock
from claude_wire.messages.blocks.text import CacheControl, TextBlock
from claude_wire.messages.unknown import OrUnknownBlock, OrUnknownObject


class DirectCaller(Wire, tag_field="type", tag="direct", frozen=True):
    """The model made the tool call itself."""


class ServerToolCaller(Wire, tag_field="type", tag="code_execution_20250825", frozen=True):
    """Code run by the API's code execution tool made the tool call, not the model directly.

    ``tool_id`` is the id of the code execution call. The tag names a version of that tool,
    ``code_execution_20250825``.
    """

    tool_id: str


class ServerToolCaller20260120(Wire, tag_field="type", tag="code_execution_20260120", frozen=True):
    """Like :class:`ServerToolCaller`, for version ``code_execution_20260120`` of the tool."""

    tool_id: str


Caller: TypeAlias = DirectCaller | ServerToolCaller | ServerToolCaller20260120 | OrUnknownObject


class ServerToolUseBlock(Wire, tag_field="type", tag="server_tool_use", kw_only=True, frozen=True):
    """The model calls a tool that the API runs; its result follows as a later block of the same message.

    ``name`` may have values not known today. The result block repeats ``id`` as ``tool_use_id``. While it streams,
    ``input`` starts as ``{}``.
    """

    id: str
    input: Any
    # one of advisor, web_search, web_fetch, code_execution, bash_code_execution, text_editor_code_execution,
    # tool_search_tool_regex, tool_search_tool_bm25
    name: str
    caller: Caller | None = None
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class WebSearchResultBlock(Wire, tag_field="type", tag="web_search_result", kw_only=True, frozen=True):
    """One page found by the API's web search.

    ``encrypted_content`` is opaque, and must be sent back unchanged with the conversation. ``page_age`` is
    null when the age is not known.
    """

    encrypted_content: str
    page_age: str | UnsetType | None = UNSET
    title: str
    url: str


class WebSearchToolResultError(Wire, tag_field="type", tag="web_search_tool_result_error", frozen=True):
    """The web search failed; ``error_code`` says why, and may have values not known today."""

    # one of unavailable, invalid_tool_input, too_many_requests, max_uses_exceeded, query_too_long, request_too_large
    error_code: str


class WebSearchToolResultBlock(Wire, tag_field="type", tag="web_search_tool_result", kw_only=True, frozen=True):
    """The result of a web search that the API ran.

    ``content`` is a list of pages on success but a single object, :class:`WebSearchToolResultError`, on failure.
    """

    content: WebSearchToolResultError | OrUnknownObject | list[WebSearchResultBlock | OrUnknownBlock]
    tool_use_id: str
    caller: Caller | None = None
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class WebFetchToolResultError(Wire, tag_field="type", tag="web_fetch_tool_result_error", frozen=True):
    """The fetch failed; ``error_code`` says why, and may have values not known today."""

    # one of unavailable, invalid_tool_input, too_many_requests, url_too_long, url_not_allowed,
    # url_not_in_prior_context, url_not_accessible, unsupported_content_type, max_uses_exceeded, content_too_large
    error_code: str


class WebFetchResultBlock(Wire, tag_field="type", tag="web_fetch_result", frozen=True):
    """A page that the API fetched, as a document.

    ``retrieved_at`` is an ISO 8601 time, or null.
    """

    content: DocumentBlock | OrUnknownBlock
    url: str
    retrieved_at: str | UnsetType | None = UNSET


WebFetchResult: TypeAlias = WebFetchToolResultError | WebFetchResultBlock | OrUnknownObject


class WebFetchToolResultBlock(Wire, tag_field="type", tag="web_fetch_tool_result", kw_only=True, frozen=True):
    """The result of a page fetch that the API ran."""

    content: WebFetchResult
    tool_use_id: str
    caller: Caller | None = None
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class AdvisorToolResultError(Wire, tag_field="type", tag="advisor_tool_result_error", frozen=True):
    """The advisor model could not be asked. ``error_code`` says why, and may have values not known today."""

    # one of overloaded, model_not_found, prompt_too_long, unavailable, too_many_requests, execution_time_exceeded,
    # max_uses_exceeded
    error_code: str


class AdvisorResultBlock(Wire, tag_field="type", tag="advisor_result", frozen=True):
    """The advice that another model gave, as text.

    ``stop_reason`` is the advisor's own; ``max_tokens`` means that its advice was cut short.
    """

    text: str
    stop_reason: str | UnsetType | None = UNSET


class AdvisorRedactedResultBlock(Wire, tag_field="type", tag="advisor_redacted_result", frozen=True):
    """Advice that only the model may read.

    ``encrypted_content`` is opaque, and must be sent back unchanged. ``stop_reason`` is the advisor's own.
    """

    encrypted_content: str
    stop_reason: str | UnsetType | None = UNSET


AdvisorResult: TypeAlias = AdvisorToolResultError | AdvisorResultBlock | AdvisorRedactedResultBlock | OrUnknownObject


class AdvisorToolResultBlock(Wire, tag_field="type", tag="advisor_tool_result", frozen=True):
    """The result of asking the advisor, a second model that the API runs beside the first.

    The advisor's tokens are counted in :class:`AdvisorMessageIterationUsage`.
    """

    content: AdvisorResult
    tool_use_id: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class CodeExecutionToolResultError(Wire, tag_field="type", tag="code_execution_tool_result_error", frozen=True):
    """The code could not be run; ``error_code`` says why, and may have values not known today.

    Code that ran and failed is a :class:`CodeExecutionResultBlock` with a non-zero ``return_code``.
    """

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded
    error_code: str


class CodeExecutionOutputBlock(Wire, tag_field="type", tag="code_execution_output", frozen=True):
    """A file that the code left behind, by its Files API id."""

    file_id: str


class CodeExecutionResultBlock(Wire, tag_field="type", tag="code_execution_result", kw_only=True, frozen=True):
    """The result of code in the API's container: its output, its return code and the files that it left."""

    content: list[CodeExecutionOutputBlock | OrUnknownBlock]
    return_code: int
    stderr: str
    stdout: str


class EncryptedCodeExecutionResultBlock(
    Wire, tag_field="type", tag="encrypted_code_execution_result", kw_only=True, frozen=True
):
    """Like :class:`CodeExecutionResultBlock`, with standard output that only the model may read.

    ``encrypted_stdout`` takes the place of ``stdout``; ``stderr`` and ``return_code`` stay readable.
    """

    content: list[CodeExecutionOutputBlock | OrUnknownBlock]
    encrypted_stdout: str
    return_code: int
    stderr: str


CodeExecutionResult: TypeAlias = (
    CodeExecutionToolResultError | CodeExecutionResultBlock | EncryptedCodeExecutionResultBlock | OrUnknownObject
)


class CodeExecutionToolResultBlock(Wire, tag_field="type", tag="code_execution_tool_result", frozen=True):
    """The result of code that the API ran in its container."""

    content: CodeExecutionResult
    tool_use_id: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class BashCodeExecutionToolResultError(
    Wire, tag_field="type", tag="bash_code_execution_tool_result_error", frozen=True
):
    """The shell command could not be run; ``error_code`` says why, and may have values not known today."""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded, output_file_too_large
    error_code: str


class BashCodeExecutionOutputBlock(Wire, tag_field="type", tag="bash_code_execution_output", frozen=True):
    """A file that the shell command left behind, by its Files API id."""

    file_id: str


class BashCodeExecutionResultBlock(Wire, tag_field="type", tag="bash_code_execution_result", kw_only=True, frozen=True):
    """The result of a shell command in the API's container: its output, its return code and the files that it left."""

    content: list[BashCodeExecutionOutputBlock | OrUnknownBlock]
    return_code: int
    stderr: str
    stdout: str


BashCodeExecutionResult: TypeAlias = BashCodeExecutionToolResultError | BashCodeExecutionResultBlock | OrUnknownObject


class BashCodeExecutionToolResultBlock(Wire, tag_field="type", tag="bash_code_execution_tool_result", frozen=True):
    """The result of a shell command that the API ran in its container.

    The CLI's own ``Bash`` tool runs on the user's machine and answers with a :class:`ToolResultBlock`.
    """

    content: BashCodeExecutionResult
    tool_use_id: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class TextEditorCodeExecutionToolResultError(
    Wire, tag_field="type", tag="text_editor_code_execution_tool_result_error", frozen=True
):
    """The file operation failed; ``error_code`` says why, and may have values not known today.

    ``error_message`` is null when there is nothing to add.
    """

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded, file_not_found
    error_code: str
    error_message: str | UnsetType | None = UNSET


class TextEditorCodeExecutionViewResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_view_result", kw_only=True, frozen=True
):
    """The content of a file viewed in the API's container.

    ``num_lines``, ``start_line`` and ``total_lines`` count lines, and are null for files without lines.
    """

    content: str
    # one of text, image, pdf
    file_type: str
    num_lines: int | UnsetType | None = UNSET
    start_line: int | UnsetType | None = UNSET
    total_lines: int | UnsetType | None = UNSET


class TextEditorCodeExecutionCreateResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_create_result", frozen=True
):
    """A file was written in the API's container. ``is_file_update`` is true if the file existed before."""

    is_file_update: bool


class TextEditorCodeExecutionStrReplaceResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_str_replace_result", kw_only=True, frozen=True
):
    """A piece of a file in the API's container was replaced. The fields are those of a diff hunk.

    ``old_start`` and ``old_lines`` locate the replaced lines, ``new_start`` and ``new_lines`` those that took their
    place; each may be null.
    """

    lines: list[str] | UnsetType | None = UNSET
    new_lines: int | UnsetType | None = UNSET
    new_start: int | UnsetType | None = UNSET
    old_lines: int | UnsetType | None = UNSET
    old_start: int | UnsetType | None = UNSET


TextEditorCodeExecutionResult: TypeAlias = (
    TextEditorCodeExecutionToolResultError
    | TextEditorCodeExecutionViewResultBlock
    | TextEditorCodeExecutionCreateResultBlock
    | TextEditorCodeExecutionStrReplaceResultBlock
    | OrUnknownObject
)


class TextEditorCodeExecutionToolResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_tool_result", frozen=True
):
    """The result of a file operation in the API's container: view, create or replace."""

    content: TextEditorCodeExecutionResult
    tool_use_id: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class ToolReferenceBlock(Wire, tag_field="type", tag="tool_reference", frozen=True):
    """Names a tool that a search found, so that the model may call it from here on.

    It comes in the result of the API's tool search and inside the ``content`` of a :class:`ToolResultBlock`.
    """

    tool_name: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class ToolSearchToolResultError(Wire, tag_field="type", tag="tool_search_tool_result_error", frozen=True):
    """The tool search failed; ``error_code`` says why, and may have values not known today."""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded
    error_code: str
    error_message: str | UnsetType | None = UNSET


class ToolSearchToolSearchResultBlock(Wire, tag_field="type", tag="tool_search_tool_search_result", frozen=True):
    """The tools that the search found, by reference; the list may be empty."""

    tool_references: list[ToolReferenceBlock | OrUnknownBlock]


ToolSearchResult: TypeAlias = ToolSearchToolResultError | ToolSearchToolSearchResultBlock | OrUnknownObject


class ToolSearchToolResultBlock(Wire, tag_field="type", tag="tool_search_tool_result", frozen=True):
    """The result of a search among deferred tools that the API ran."""

    content: ToolSearchResult
    tool_use_id: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class McpToolUseBlock(Wire, tag_field="type", tag="mcp_tool_use", kw_only=True, frozen=True):
    """The model calls a tool of an MCP server that the API itself is connected to.

    MCP servers of the CLI or the host are called through :class:`ToolUseBlock` instead.
    """

    id: str
    input: Any
    name: str
    server_name: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class McpToolResultBlock(Wire, tag_field="type", tag="mcp_tool_result", kw_only=True, frozen=True):
    """The result of an MCP tool that the API called.

    ``content`` is a string or a list of text blocks; as part of a prompt it and ``is_error`` may be missing.
    """

    content: str | list[TextBlock | OrUnknownBlock] | None = None
    is_error: bool | None = None
    tool_use_id: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET


class McpTool(Wire, frozen=True):
    """A tool of an MCP server: its name, its JSON schema and its description."""

    input_schema: dict[str, Any]
    name: str
    description: str | UnsetType | None = UNSET


class McpToolListingBlock(Wire, tag_field="type", tag="mcp_tool_listing", frozen=True):
    """The tools that an MCP server connected to the API offers."""

    mcp_server_name: str
    tools: list[McpTool]
