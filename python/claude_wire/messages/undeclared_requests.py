"""DOC module undeclared_requests"""

from __future__ import annotations

from typing import Any

from claude_wire.messages.request_body import ControlRequestBody

__all__ = [
    "EndSessionRequest",
    "ExportConversationRequest",
    "GenerateSessionTitleRequest",
    "GetMemoryDialogRequest",
    "GetPlanRequest",
    "GetStatusRequest",
    "GetWorkspaceDiffRequest",
    "SetCwdRequest",
    "SetPromptSuggestionsPausedRequest",
    "SideQuestionRequest",
    "SubmitFeedbackRequest",
]


class GetStatusRequest(ControlRequestBody[dict[str, Any]], tag="get_status", frozen=True):
    """DOC GetStatusRequest"""


class GetWorkspaceDiffRequest(ControlRequestBody[dict[str, Any]], tag="get_workspace_diff", frozen=True):
    """DOC GetWorkspaceDiffRequest"""


class GetPlanRequest(ControlRequestBody[dict[str, Any]], tag="get_plan", frozen=True):
    """DOC GetPlanRequest"""


class ExportConversationRequest(ControlRequestBody[dict[str, Any]], tag="export_conversation", frozen=True):
    """DOC ExportConversationRequest"""


class GenerateSessionTitleRequest(
    ControlRequestBody[dict[str, Any]], tag="generate_session_title", kw_only=True, frozen=True
):
    """DOC GenerateSessionTitleRequest"""

    description: str | None = None
    persist: bool | None = None


class SideQuestionRequest(ControlRequestBody[dict[str, Any]], tag="side_question", kw_only=True, frozen=True):
    """DOC SideQuestionRequest"""

    question: str | None = None


class SetCwdRequest(ControlRequestBody[dict[str, Any]], tag="set_cwd", kw_only=True, frozen=True):
    """DOC SetCwdRequest"""

    cwd: str | None = None
    path: str | None = None


class GetMemoryDialogRequest(ControlRequestBody[dict[str, Any]], tag="get_memory_dialog", frozen=True):
    """DOC GetMemoryDialogRequest"""


class SetPromptSuggestionsPausedRequest(
    ControlRequestBody[dict[str, Any]], tag="set_prompt_suggestions_paused", kw_only=True, frozen=True
):
    """DOC SetPromptSuggestionsPausedRequest"""

    paused: bool | None = None


class SubmitFeedbackRequest(ControlRequestBody[dict[str, Any]], tag="submit_feedback", frozen=True):
    """DOC SubmitFeedbackRequest"""


class EndSessionRequest(ControlRequestBody[dict[str, Any]], tag="end_session", frozen=True):
    """DOC EndSessionRequest"""
