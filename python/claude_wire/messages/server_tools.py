"""DOC module server_tools"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET, UnsetType

from claude_wire.messages._base import Wire
from claude_wire.messages.media import DocumentBlock
from claude_wire.messages.text import CacheControl, TextBlock
from claude_wire.messages.unknown import UnknownObject

__all__ = [
    "AdvisorRedactedResultBlock",
    "AdvisorResult",
    "AdvisorResultBlock",
    "AdvisorToolResultBlock",
    "AdvisorToolResultError",
    "BashCodeExecutionOutputBlock",
    "BashCodeExecutionResult",
    "BashCodeExecutionResultBlock",
    "BashCodeExecutionToolResultBlock",
    "BashCodeExecutionToolResultError",
    "Caller",
    "CodeExecutionOutputBlock",
    "CodeExecutionResult",
    "CodeExecutionResultBlock",
    "CodeExecutionToolResultBlock",
    "CodeExecutionToolResultError",
    "DirectCaller",
    "EncryptedCodeExecutionResultBlock",
    "McpTool",
    "McpToolListingBlock",
    "McpToolResultBlock",
    "McpToolUseBlock",
    "ServerToolCaller",
    "ServerToolCaller20260120",
    "ServerToolUseBlock",
    "TextEditorCodeExecutionCreateResultBlock",
    "TextEditorCodeExecutionResult",
    "TextEditorCodeExecutionStrReplaceResultBlock",
    "TextEditorCodeExecutionToolResultBlock",
    "TextEditorCodeExecutionToolResultError",
    "TextEditorCodeExecutionViewResultBlock",
    "ToolReferenceBlock",
    "ToolSearchResult",
    "ToolSearchToolResultBlock",
    "ToolSearchToolResultError",
    "ToolSearchToolSearchResultBlock",
    "WebFetchResult",
    "WebFetchResultBlock",
    "WebFetchToolResultBlock",
    "WebFetchToolResultError",
    "WebSearchResultBlock",
    "WebSearchToolResultBlock",
    "WebSearchToolResultError",
]


class DirectCaller(Wire, tag_field="type", tag="direct", frozen=True):
    """DOC DirectCaller"""


class ServerToolCaller(Wire, tag_field="type", tag="code_execution_20250825", frozen=True):
    """DOC ServerToolCaller"""

    tool_id: str


class ServerToolCaller20260120(Wire, tag_field="type", tag="code_execution_20260120", frozen=True):
    """DOC ServerToolCaller20260120"""

    tool_id: str


KnownCaller: TypeAlias = DirectCaller | ServerToolCaller | ServerToolCaller20260120
if TYPE_CHECKING:
    Caller: TypeAlias = KnownCaller | UnknownObject
else:
    Caller = KnownCaller


class ServerToolUseBlock(Wire, tag_field="type", tag="server_tool_use", kw_only=True, frozen=True):
    """DOC ServerToolUseBlock"""

    id: str
    input: Any
    # one of advisor, web_search, web_fetch, code_execution, bash_code_execution, text_editor_code_execution,
    # tool_search_tool_regex, tool_search_tool_bm25
    name: str
    caller: Caller | None = None
    cache_control: CacheControl | None | UnsetType = UNSET


class WebSearchResultBlock(Wire, tag_field="type", tag="web_search_result", kw_only=True, frozen=True):
    """DOC WebSearchResultBlock"""

    encrypted_content: str
    page_age: str | None | UnsetType = UNSET
    title: str
    url: str


class WebSearchToolResultError(Wire, tag_field="type", tag="web_search_tool_result_error", frozen=True):
    """DOC WebSearchToolResultError"""

    # one of unavailable, invalid_tool_input, too_many_requests, max_uses_exceeded, query_too_long, request_too_large
    error_code: str


class WebSearchToolResultBlock(Wire, tag_field="type", tag="web_search_tool_result", kw_only=True, frozen=True):
    """DOC WebSearchToolResultBlock"""

    content: WebSearchToolResultError | list[WebSearchResultBlock]
    tool_use_id: str
    caller: Caller | None = None
    cache_control: CacheControl | None | UnsetType = UNSET


class WebFetchToolResultError(Wire, tag_field="type", tag="web_fetch_tool_result_error", frozen=True):
    """DOC WebFetchToolResultError"""

    # one of unavailable, invalid_tool_input, too_many_requests, url_too_long, url_not_allowed,
    # url_not_in_prior_context, url_not_accessible, unsupported_content_type, max_uses_exceeded, content_too_large
    error_code: str


class WebFetchResultBlock(Wire, tag_field="type", tag="web_fetch_result", frozen=True):
    """DOC WebFetchResultBlock"""

    content: DocumentBlock
    url: str
    retrieved_at: str | None | UnsetType = UNSET


KnownWebFetchResult: TypeAlias = WebFetchToolResultError | WebFetchResultBlock
if TYPE_CHECKING:
    WebFetchResult: TypeAlias = KnownWebFetchResult | UnknownObject
else:
    WebFetchResult = KnownWebFetchResult


class WebFetchToolResultBlock(Wire, tag_field="type", tag="web_fetch_tool_result", kw_only=True, frozen=True):
    """DOC WebFetchToolResultBlock"""

    content: WebFetchResult
    tool_use_id: str
    caller: Caller | None = None
    cache_control: CacheControl | None | UnsetType = UNSET


class AdvisorToolResultError(Wire, tag_field="type", tag="advisor_tool_result_error", frozen=True):
    """DOC AdvisorToolResultError"""

    # one of overloaded, model_not_found, prompt_too_long, unavailable, too_many_requests, execution_time_exceeded,
    # max_uses_exceeded
    error_code: str


class AdvisorResultBlock(Wire, tag_field="type", tag="advisor_result", frozen=True):
    """DOC AdvisorResultBlock"""

    text: str
    stop_reason: str | None | UnsetType = UNSET


class AdvisorRedactedResultBlock(Wire, tag_field="type", tag="advisor_redacted_result", frozen=True):
    """DOC AdvisorRedactedResultBlock"""

    encrypted_content: str
    stop_reason: str | None | UnsetType = UNSET


KnownAdvisorResult: TypeAlias = AdvisorToolResultError | AdvisorResultBlock | AdvisorRedactedResultBlock
if TYPE_CHECKING:
    AdvisorResult: TypeAlias = KnownAdvisorResult | UnknownObject
else:
    AdvisorResult = KnownAdvisorResult


class AdvisorToolResultBlock(Wire, tag_field="type", tag="advisor_tool_result", frozen=True):
    """DOC AdvisorToolResultBlock"""

    content: AdvisorResult
    tool_use_id: str
    cache_control: CacheControl | None | UnsetType = UNSET


class CodeExecutionToolResultError(Wire, tag_field="type", tag="code_execution_tool_result_error", frozen=True):
    """DOC CodeExecutionToolResultError"""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded
    error_code: str


class CodeExecutionOutputBlock(Wire, tag_field="type", tag="code_execution_output", frozen=True):
    """DOC CodeExecutionOutputBlock"""

    file_id: str


class CodeExecutionResultBlock(Wire, tag_field="type", tag="code_execution_result", kw_only=True, frozen=True):
    """DOC CodeExecutionResultBlock"""

    content: list[CodeExecutionOutputBlock]
    return_code: int
    stderr: str
    stdout: str


class EncryptedCodeExecutionResultBlock(
    Wire, tag_field="type", tag="encrypted_code_execution_result", kw_only=True, frozen=True
):
    """DOC EncryptedCodeExecutionResultBlock"""

    content: list[CodeExecutionOutputBlock]
    encrypted_stdout: str
    return_code: int
    stderr: str


KnownCodeExecutionResult: TypeAlias = (
    CodeExecutionToolResultError | CodeExecutionResultBlock | EncryptedCodeExecutionResultBlock
)
if TYPE_CHECKING:
    CodeExecutionResult: TypeAlias = KnownCodeExecutionResult | UnknownObject
else:
    CodeExecutionResult = KnownCodeExecutionResult


class CodeExecutionToolResultBlock(Wire, tag_field="type", tag="code_execution_tool_result", frozen=True):
    """DOC CodeExecutionToolResultBlock"""

    content: CodeExecutionResult
    tool_use_id: str
    cache_control: CacheControl | None | UnsetType = UNSET


class BashCodeExecutionToolResultError(
    Wire, tag_field="type", tag="bash_code_execution_tool_result_error", frozen=True
):
    """DOC BashCodeExecutionToolResultError"""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded, output_file_too_large
    error_code: str


class BashCodeExecutionOutputBlock(Wire, tag_field="type", tag="bash_code_execution_output", frozen=True):
    """DOC BashCodeExecutionOutputBlock"""

    file_id: str


class BashCodeExecutionResultBlock(Wire, tag_field="type", tag="bash_code_execution_result", kw_only=True, frozen=True):
    """DOC BashCodeExecutionResultBlock"""

    content: list[BashCodeExecutionOutputBlock]
    return_code: int
    stderr: str
    stdout: str


KnownBashCodeExecutionResult: TypeAlias = BashCodeExecutionToolResultError | BashCodeExecutionResultBlock
if TYPE_CHECKING:
    BashCodeExecutionResult: TypeAlias = KnownBashCodeExecutionResult | UnknownObject
else:
    BashCodeExecutionResult = KnownBashCodeExecutionResult


class BashCodeExecutionToolResultBlock(Wire, tag_field="type", tag="bash_code_execution_tool_result", frozen=True):
    """DOC BashCodeExecutionToolResultBlock"""

    content: BashCodeExecutionResult
    tool_use_id: str
    cache_control: CacheControl | None | UnsetType = UNSET


class TextEditorCodeExecutionToolResultError(
    Wire, tag_field="type", tag="text_editor_code_execution_tool_result_error", frozen=True
):
    """DOC TextEditorCodeExecutionToolResultError"""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded, file_not_found
    error_code: str
    error_message: str | None | UnsetType = UNSET


class TextEditorCodeExecutionViewResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_view_result", kw_only=True, frozen=True
):
    """DOC TextEditorCodeExecutionViewResultBlock"""

    content: str
    # one of text, image, pdf
    file_type: str
    num_lines: int | None | UnsetType = UNSET
    start_line: int | None | UnsetType = UNSET
    total_lines: int | None | UnsetType = UNSET


class TextEditorCodeExecutionCreateResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_create_result", frozen=True
):
    """DOC TextEditorCodeExecutionCreateResultBlock"""

    is_file_update: bool


class TextEditorCodeExecutionStrReplaceResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_str_replace_result", kw_only=True, frozen=True
):
    """DOC TextEditorCodeExecutionStrReplaceResultBlock"""

    lines: list[str] | None | UnsetType = UNSET
    new_lines: int | None | UnsetType = UNSET
    new_start: int | None | UnsetType = UNSET
    old_lines: int | None | UnsetType = UNSET
    old_start: int | None | UnsetType = UNSET


KnownTextEditorCodeExecutionResult: TypeAlias = (
    TextEditorCodeExecutionToolResultError
    | TextEditorCodeExecutionViewResultBlock
    | TextEditorCodeExecutionCreateResultBlock
    | TextEditorCodeExecutionStrReplaceResultBlock
)
if TYPE_CHECKING:
    TextEditorCodeExecutionResult: TypeAlias = KnownTextEditorCodeExecutionResult | UnknownObject
else:
    TextEditorCodeExecutionResult = KnownTextEditorCodeExecutionResult


class TextEditorCodeExecutionToolResultBlock(
    Wire, tag_field="type", tag="text_editor_code_execution_tool_result", frozen=True
):
    """DOC TextEditorCodeExecutionToolResultBlock"""

    content: TextEditorCodeExecutionResult
    tool_use_id: str
    cache_control: CacheControl | None | UnsetType = UNSET


class ToolReferenceBlock(Wire, tag_field="type", tag="tool_reference", frozen=True):
    """DOC ToolReferenceBlock"""

    tool_name: str
    cache_control: CacheControl | None | UnsetType = UNSET


class ToolSearchToolResultError(Wire, tag_field="type", tag="tool_search_tool_result_error", frozen=True):
    """DOC ToolSearchToolResultError"""

    # one of unavailable, invalid_tool_input, too_many_requests, execution_time_exceeded
    error_code: str
    error_message: str | None | UnsetType = UNSET


class ToolSearchToolSearchResultBlock(Wire, tag_field="type", tag="tool_search_tool_search_result", frozen=True):
    """DOC ToolSearchToolSearchResultBlock"""

    tool_references: list[ToolReferenceBlock]


KnownToolSearchResult: TypeAlias = ToolSearchToolResultError | ToolSearchToolSearchResultBlock
if TYPE_CHECKING:
    ToolSearchResult: TypeAlias = KnownToolSearchResult | UnknownObject
else:
    ToolSearchResult = KnownToolSearchResult


class ToolSearchToolResultBlock(Wire, tag_field="type", tag="tool_search_tool_result", frozen=True):
    """DOC ToolSearchToolResultBlock"""

    content: ToolSearchResult
    tool_use_id: str
    cache_control: CacheControl | None | UnsetType = UNSET


class McpToolUseBlock(Wire, tag_field="type", tag="mcp_tool_use", kw_only=True, frozen=True):
    """DOC McpToolUseBlock"""

    id: str
    input: Any
    name: str
    server_name: str
    cache_control: CacheControl | None | UnsetType = UNSET


class McpToolResultBlock(Wire, tag_field="type", tag="mcp_tool_result", kw_only=True, frozen=True):
    """DOC McpToolResultBlock"""

    content: str | list[TextBlock] | None = None
    is_error: bool | None = None
    tool_use_id: str
    cache_control: CacheControl | None | UnsetType = UNSET


class McpTool(Wire, frozen=True):
    """DOC McpTool"""

    input_schema: dict[str, Any]
    name: str
    description: str | None | UnsetType = UNSET


class McpToolListingBlock(Wire, tag_field="type", tag="mcp_tool_listing", frozen=True):
    """DOC McpToolListingBlock"""

    mcp_server_name: str
    tools: list[McpTool]
