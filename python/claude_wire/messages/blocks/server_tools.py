"""Calls and results of tools that the API itself runs. Both are blocks of the same assistant message.

The host does not answer these calls. For tools of the CLI and the host, see :class:`ToolUseBlock` and
:class:`ToolResultBlock`.
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
    """Code in the API's container made the tool call. The tag names the version of the code execution tool."""

    tool_id: str
    """The id of the code execution call."""


class ServerToolCaller20260120(Wire, tag_field="type", tag="code_execution_20260120", frozen=True):
    """Like :class:`ServerToolCaller`, for version ``code_execution_20260120`` of the tool."""

    tool_id: str
    """The id of the code execution call."""


Caller: TypeAlias = DirectCaller | ServerToolCaller | ServerToolCaller20260120 | OrUnknownObject


class ServerToolUseBlock(Wire, tag_field="type", tag="server_tool_use", kw_only=True, frozen=True):
    """The model calls a tool that the API runs; its result follows as a later block of the same message."""

    id: str
    """The id of the call, which its result repeats."""
    input: Any
    """The input of the tool; ``{}`` in a ``content_block_start`` event."""
    # one of advisor, web_search, web_fetch, code_execution, bash_code_execution, text_editor_code_execution,
    # tool_search_tool_regex, tool_search_tool_bm25
    name: str
    """The name of the tool; later models may call other tools."""
    caller: Caller | None = None
    """The caller: the model, or code in the API's container."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class WebSearchResultBlock(Wire, tag_field="type", tag="web_search_result", kw_only=True, frozen=True):
    """One page found by the API's web search."""

    encrypted_content: str
    """Opaque; send it back unchanged."""
    page_age: str | UnsetType | None = UNSET
    """The age of the page, as text; null if unknown."""
    title: str
    url: str


class WebSearchToolResultError(Wire, tag_field="type", tag="web_search_tool_result_error", frozen=True):
    """The web search failed."""

    # one of unavailable, invalid_tool_input, too_many_requests, max_uses_exceeded, query_too_long, request_too_large
    error_code: str
    """Why the search failed."""


class WebSearchToolResultBlock(Wire, tag_field="type", tag="web_search_tool_result", kw_only=True, frozen=True):
    """The result of a web search that the API ran."""

    content: WebSearchToolResultError | OrUnknownObject | list[WebSearchResultBlock | OrUnknownBlock]
    """The pages; or an object, :class:`WebSearchToolResultError`, if the search failed."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    caller: Caller | None = None
    """The caller: the model, or code in the API's container."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class WebFetchToolResultError(Wire, tag_field="type", tag="web_fetch_tool_result_error", frozen=True):
    """The fetch failed."""

    # one of unavailable, invalid_tool_input, too_many_requests, url_too_long, url_not_allowed,
    # url_not_in_prior_context, url_not_accessible, unsupported_content_type, max_uses_exceeded, content_too_large
    error_code: str
    """Why the fetch failed."""


class WebFetchResultBlock(Wire, tag_field="type", tag="web_fetch_result", frozen=True):
    """A page that the API fetched."""

    content: DocumentBlock | OrUnknownBlock
    """The page as a document."""
    url: str
    retrieved_at: str | UnsetType | None = UNSET
    """When the API fetched the page, in ISO 8601; null if unknown."""


WebFetchResult: TypeAlias = WebFetchToolResultError | WebFetchResultBlock | OrUnknownObject


class WebFetchToolResultBlock(Wire, tag_field="type", tag="web_fetch_tool_result", kw_only=True, frozen=True):
    """The result of a page fetch that the API ran."""

    content: WebFetchResult
    """The page, or an error."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    caller: Caller | None = None
    """The caller: the model, or code in the API's container."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class AdvisorToolResultError(Wire, tag_field="type", tag="advisor_tool_result_error", frozen=True):
    """The advisor model could not be asked."""

    # one of overloaded, model_not_found, prompt_too_long, unavailable, too_many_requests, execution_time_exceeded,
    # max_uses_exceeded
    error_code: str
    """Why the advisor could not be asked."""


class AdvisorResultBlock(Wire, tag_field="type", tag="advisor_result", frozen=True):
    """The advice that another model gave."""

    text: str
    stop_reason: str | UnsetType | None = UNSET
    """Why the advisor stopped; ``max_tokens`` if its advice was cut short."""


class AdvisorRedactedResultBlock(Wire, tag_field="type", tag="advisor_redacted_result", frozen=True):
    """Advice that only the model may read."""

    encrypted_content: str
    """Opaque; send it back unchanged."""
    stop_reason: str | UnsetType | None = UNSET
    """Why the advisor stopped; ``max_tokens`` if its advice was cut short."""


AdvisorResult: TypeAlias = AdvisorToolResultError | AdvisorResultBlock | AdvisorRedactedResultBlock | OrUnknownObject


class AdvisorToolResultBlock(Wire, tag_field="type", tag="advisor_tool_result", frozen=True):
    """The result of asking the advisor, a second model of the API.

    The advisor's tokens are counted in :class:`AdvisorMessageIterationUsage`.
    """

    content: AdvisorResult
    """The advice, or an error."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class CodeExecutionToolResultError(Wire, tag_field="type", tag="code_execution_tool_result_error", frozen=True):
    """The code could not be run.

    Code that ran and failed is a :class:`CodeExecutionResultBlock` with a non-zero ``return_code``.
    """

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded
    error_code: str
    """Why the code could not be run."""


class CodeExecutionOutputBlock(Wire, tag_field="type", tag="code_execution_output", frozen=True):
    """A file that the code wrote."""

    file_id: str
    """The file's id in the Files API."""


class CodeExecutionResultBlock(Wire, tag_field="type", tag="code_execution_result", kw_only=True, frozen=True):
    """The result of code in the API's container: its output, exit code and files."""

    content: list[CodeExecutionOutputBlock | OrUnknownBlock]
    """The files that the code wrote."""
    return_code: int
    """The exit code; 0 for success."""
    stderr: str
    stdout: str


class EncryptedCodeExecutionResultBlock(
    Wire, tag_field="type", tag="encrypted_code_execution_result", kw_only=True, frozen=True
):
    """Like :class:`CodeExecutionResultBlock`, but only the model can read the standard output."""

    content: list[CodeExecutionOutputBlock | OrUnknownBlock]
    """The files that the code wrote."""
    encrypted_stdout: str
    """Opaque; send it back unchanged."""
    return_code: int
    """The exit code; 0 for success."""
    stderr: str


CodeExecutionResult: TypeAlias = (
    CodeExecutionToolResultError | CodeExecutionResultBlock | EncryptedCodeExecutionResultBlock | OrUnknownObject
)


class CodeExecutionToolResultBlock(Wire, tag_field="type", tag="code_execution_tool_result", frozen=True):
    """The result of code that the API ran in its container."""

    content: CodeExecutionResult
    """The result, or an error."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class BashCodeExecutionToolResultError(
    Wire, tag_field="type", tag="bash_code_execution_tool_result_error", frozen=True
):
    """The shell command could not be run."""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded, output_file_too_large
    error_code: str
    """Why the command could not be run."""


class BashCodeExecutionOutputBlock(Wire, tag_field="type", tag="bash_code_execution_output", frozen=True):
    """A file that the shell command wrote."""

    file_id: str
    """The file's id in the Files API."""


class BashCodeExecutionResultBlock(Wire, tag_field="type", tag="bash_code_execution_result", kw_only=True, frozen=True):
    """The result of a shell command in the API's container: its output, exit code and files."""

    content: list[BashCodeExecutionOutputBlock | OrUnknownBlock]
    """The files that the shell command wrote."""
    return_code: int
    """The exit code; 0 for success."""
    stderr: str
    stdout: str


BashCodeExecutionResult: TypeAlias = BashCodeExecutionToolResultError | BashCodeExecutionResultBlock | OrUnknownObject


class BashCodeExecutionToolResultBlock(Wire, tag_field="type", tag="bash_code_execution_tool_result", frozen=True):
    """The result of a shell command that the API ran in its container.

    The CLI's own ``Bash`` tool runs on the user's machine and answers with a :class:`ToolResultBlock`.
    """

    content: BashCodeExecutionResult
    """The result, or an error."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class TextEditorCodeExecutionToolResultError(
    Wire, tag_field="type", tag="text_editor_code_execution_tool_result_error", frozen=True
):
    """The file operation failed."""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded, file_not_found
    error_code: str
    """Why the operation failed."""
    error_message: str | UnsetType | None = UNSET
    """Details of the error; null if there are none."""


class TextEditorCodeExecutionViewResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_view_result", kw_only=True, frozen=True
):
    """The content of a file viewed in the API's container."""

    content: str
    """The content, or the lines that the model asked for."""
    # one of text, image, pdf
    file_type: str
    num_lines: int | UnsetType | None = UNSET
    """The number of lines in ``content``; null for a file without lines."""
    start_line: int | UnsetType | None = UNSET
    """The number of the first line in ``content``; null for a file without lines."""
    total_lines: int | UnsetType | None = UNSET
    """The number of lines in the file; null for a file without lines."""


class TextEditorCodeExecutionCreateResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_create_result", frozen=True
):
    """A file was written in the API's container."""

    is_file_update: bool
    """True if the file existed before."""


class TextEditorCodeExecutionStrReplaceResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_str_replace_result", kw_only=True, frozen=True
):
    """A piece of a file in the API's container was replaced. The fields are those of a diff hunk."""

    lines: list[str] | UnsetType | None = UNSET
    """The lines of the hunk, as in a diff."""
    new_lines: int | UnsetType | None = UNSET
    """The number of new lines in the hunk."""
    new_start: int | UnsetType | None = UNSET
    """The line number where the new lines begin."""
    old_lines: int | UnsetType | None = UNSET
    """The number of replaced lines in the hunk."""
    old_start: int | UnsetType | None = UNSET
    """The line number where the replaced lines began."""


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
    """The result, or an error."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class ToolReferenceBlock(Wire, tag_field="type", tag="tool_reference", frozen=True):
    """Names a tool that a search found. From then on, the model can call the tool.

    The block is in the result of the API's tool search, or in ``content`` of a :class:`ToolResultBlock`.
    """

    tool_name: str
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class ToolSearchToolResultError(Wire, tag_field="type", tag="tool_search_tool_result_error", frozen=True):
    """The tool search failed."""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded
    error_code: str
    """Why the search failed."""
    error_message: str | UnsetType | None = UNSET
    """Details of the error; null if there are none."""


class ToolSearchToolSearchResultBlock(Wire, tag_field="type", tag="tool_search_tool_search_result", frozen=True):
    """The tools that the search found."""

    tool_references: list[ToolReferenceBlock | OrUnknownBlock]
    """The tools; the list may be empty."""


ToolSearchResult: TypeAlias = ToolSearchToolResultError | ToolSearchToolSearchResultBlock | OrUnknownObject


class ToolSearchToolResultBlock(Wire, tag_field="type", tag="tool_search_tool_result", frozen=True):
    """The result of a search among deferred tools that the API ran."""

    content: ToolSearchResult
    """The tools that were found, or an error."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class McpToolUseBlock(Wire, tag_field="type", tag="mcp_tool_use", kw_only=True, frozen=True):
    """The model calls a tool of an MCP server that the API is connected to.

    A call to an MCP server of the CLI or the host is a :class:`ToolUseBlock`.
    """

    id: str
    """The id of the call, which its result repeats."""
    input: Any
    name: str
    """The name of the tool, without its server."""
    server_name: str
    """The name of the MCP server."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class McpToolResultBlock(Wire, tag_field="type", tag="mcp_tool_result", kw_only=True, frozen=True):
    """The result of an MCP tool that the API called."""

    content: str | list[TextBlock | OrUnknownBlock] | None = None
    """Text, or text blocks; may be absent in a prompt."""
    is_error: bool | None = None
    """True if the tool failed; may be absent in a prompt."""
    tool_use_id: str
    """The ``id`` of the tool call."""
    cache_control: CacheControl | OrUnknownObject | UnsetType | None = UNSET
    """Caches the prompt up to and including this block."""


class McpTool(Wire, frozen=True):
    """A tool of an MCP server."""

    input_schema: dict[str, Any]
    """The JSON schema of the input."""
    name: str
    description: str | UnsetType | None = UNSET
    """A description of the tool for the model."""


class McpToolListingBlock(Wire, tag_field="type", tag="mcp_tool_listing", frozen=True):
    """The tools of an MCP server that the API is connected to."""

    mcp_server_name: str
    tools: list[McpTool]
