"""Requests that CLI 2.1.331 answers, although its public interface does not declare them.

Any version of the CLI may change or remove these requests. Their answers have no classes.
"""

from __future__ import annotations

from typing import Any

from claude_wire.messages.base import null
from claude_wire.messages.control.request_body import ControlRequestBody


class GetStatusRequest(ControlRequestBody[dict[str, Any]], tag="get_status", frozen=True):
    """Asks for the content of ``/status``.

    The answer has ``sections``, each with a ``title`` and ``rows`` of a ``label`` and a ``value``, for display.
    """


class GetWorkspaceDiffRequest(ControlRequestBody[dict[str, Any]], tag="get_workspace_diff", frozen=True):
    """Asks for the changes in the working directory.

    The answer has ``diff``, or null and a ``noDiffReason`` such as ``no-repository``.
    """


class GetPlanRequest(ControlRequestBody[dict[str, Any]], tag="get_plan", frozen=True):
    """Asks for the plan of the session. The answer is ``{"exists": false}`` if there is none."""


class ExportConversationRequest(ControlRequestBody[dict[str, Any]], tag="export_conversation", frozen=True):
    """Asks for the conversation as plain text.

    The answer has ``text``, and ``default_filename``, a name for the file.
    """


class GenerateSessionTitleRequest(
    ControlRequestBody[dict[str, Any]], tag="generate_session_title", kw_only=True, frozen=True
):
    """Asks the CLI to make a title for the session. The answer has ``title``; null if the CLI failed."""

    description: str | None = None
    """The text to make a title for."""
    persist: bool | None = None
    """Whether to store the title."""


class SideQuestionRequest(ControlRequestBody[dict[str, Any]], tag="side_question", kw_only=True, frozen=True):
    """Asks the model a question outside the turns of the conversation, with a separate API request.

    The CLI sends a ``control_request_progress`` message when it begins. The answer has ``response``, the text, and
    ``synthetic``.
    """

    question: str | None = None
    """The question."""


class SetCwdRequest(ControlRequestBody[dict[str, Any]], tag="set_cwd", kw_only=True, frozen=True):
    """Changes the working directory of the session."""

    cwd: str | None = None
    """Not sufficient: the CLI refuses a request without ``path``."""
    path: str | None = None
    """The new working directory; required, and not empty."""


class GetMemoryDialogRequest(ControlRequestBody[dict[str, Any]], tag="get_memory_dialog", frozen=True):
    """Asks for the content of ``/memory``: instruction files, memory folders and switches.

    The answer has ``files``, ``folders``, ``memories``, ``auto_memory`` and ``auto_dream``.
    """


class SetPromptSuggestionsPausedRequest(
    ControlRequestBody[dict[str, Any]], tag="set_prompt_suggestions_paused", kw_only=True, frozen=True
):
    """Pauses prompt suggestions, or resumes them."""

    paused: bool | None = None
    """True pauses, false resumes."""


class SubmitFeedbackRequest(ControlRequestBody[dict[str, Any]], tag="submit_feedback", frozen=True):
    """Sends feedback to the maker of the CLI.

    The answer has ``feedback_id``, or null and ``unavailable_reason``. The other fields of the request are not known.
    """


class EndSessionRequest(ControlRequestBody[dict[str, Any]], tag="end_session", frozen=True):
    """Ends the session. The answer is empty.

    Close stdin afterwards, because the process may not exit by itself.
    """


class McpAuthenticateRequest(ControlRequestBody[dict[str, Any]], tag="mcp_authenticate", kw_only=True, frozen=True):
    """Signs in to an MCP server by OAuth.

    If ``requiresUserAction`` of the answer is true, the user must open the page ``authUrl``. The page redirects to
    ``redirectUri``; send the complete address in a :class:`McpOAuthCallbackUrlRequest`.
    """

    serverName: str
    """The configured name of the server."""
    redirectUri: str | None = None
    """The address that the sign-in page redirects to."""


class McpOAuthCallbackUrlRequest(
    ControlRequestBody[dict[str, Any]], tag="mcp_oauth_callback_url", kw_only=True, frozen=True
):
    """Sends the CLI the address to which the sign-in page redirected."""

    serverName: str
    """The configured name of the server."""
    callbackUrl: str
    """The whole address, with its ``code`` or ``error``."""


class McpClearAuthRequest(ControlRequestBody[dict[str, Any]], tag="mcp_clear_auth", kw_only=True, frozen=True):
    """Signs out of an MCP server. The CLI revokes and deletes its tokens."""

    serverName: str
    """The configured name of the server."""


class SetMcpPermissionModeOverrideRequest(
    ControlRequestBody[dict[str, Any]], tag="set_mcp_permission_mode_override", kw_only=True, frozen=True
):
    """Makes an MCP server's tools ask for permission, even if the session's mode allows them."""

    serverName: str
    """The configured name of the server."""
    mode: str | None = null()
    """``default`` or ``auto``, the only modes that the CLI accepts; null ends the override."""


class MessageRatedRequest(ControlRequestBody[dict[str, Any]], tag="message_rated", kw_only=True, frozen=True):
    """Records a user's rating of an assistant message."""

    messageUuid: str
    # one of positive, negative
    sentiment: str
    """The rating."""
    # one of tool_use, assistant_text
    surface: str | None = None
    """The kind of content that was rated."""
    cleared: bool | None = None
    """True removes the rating."""


class ReloadConnectorsRequest(ControlRequestBody[dict[str, Any]], tag="reload_connectors", frozen=True):
    """Loads the connectors of the account again. Send :class:`McpStatusRequest` afterwards to see the changes."""


class PromptDraftActivityRequest(ControlRequestBody[dict[str, Any]], tag="prompt_draft_activity", frozen=True):
    """Tells the CLI that the user is typing, so the CLI can prepare. Send this about every 10 seconds."""
