"""The union of all control requests. `make generate` writes this file from the message classes."""

# This file is generated: it is neither linted nor formatted.
# ruff: noqa
# fmt: off

from __future__ import annotations

from typing import TypeAlias

from claude_wire.messages.control.cli_requests import (
    CanUseToolRequest, ElicitationRequest, HookCallbackRequest, McpMessageRequest, RequestUserDialogRequest,
)
from claude_wire.messages.control.context_usage import (
    GetContextUsageRequest, GetUsageRequest,
)
from claude_wire.messages.control.host_requests import (
    ApplyFlagSettingsRequest, BackgroundTasksRequest, CancelAsyncMessageRequest, FileSuggestionsRequest,
    GetBinaryVersionRequest, GetHooksListingRequest, GetSessionCostRequest, GetSettingsRequest, GetTaskOutputRequest,
    InitializeRequest, InterruptRequest, ListModelsRequest, ListPermissionRulesRequest, McpCallRequest,
    McpReadResourceRequest, McpReconnectRequest, McpSetServersRequest, McpStatusRequest, McpToggleRequest,
    ReadFileRequest, RegisterRepoRootRequest, ReloadOutputStylesRequest, ReloadPluginsRequest, ReloadSkillsRequest,
    RenameSessionRequest, RewindFilesRequest, SeedReadStateRequest, SetColorRequest, SetHasSubscribersRequest,
    SetMaxThinkingTokensRequest, SetModelRequest, SetPermissionModeRequest, StopTaskRequest, UpdateSettingsRequest,
)
from claude_wire.messages.control.undeclared_requests import (
    EndSessionRequest, ExportConversationRequest, GenerateSessionTitleRequest, GetMemoryDialogRequest, GetPlanRequest,
    GetStatusRequest, GetWorkspaceDiffRequest, McpAuthenticateRequest, McpClearAuthRequest, McpOAuthCallbackUrlRequest,
    MessageRatedRequest, PromptDraftActivityRequest, ReloadConnectorsRequest, SetCwdRequest,
    SetMcpPermissionModeOverrideRequest, SetPromptSuggestionsPausedRequest, SideQuestionRequest, SubmitFeedbackRequest,
)
from claude_wire.messages.unknown import (
    OrUnknownRequest,
)

#: The payload of a control request, in either direction.
ControlRequestPayload: TypeAlias = (
    CanUseToolRequest | HookCallbackRequest | McpMessageRequest | ElicitationRequest | RequestUserDialogRequest |
    GetContextUsageRequest | GetUsageRequest | InitializeRequest | InterruptRequest | SetPermissionModeRequest |
    SetModelRequest | SetMaxThinkingTokensRequest | RenameSessionRequest | SetColorRequest | McpStatusRequest |
    GetSessionCostRequest | ListModelsRequest | GetBinaryVersionRequest | McpCallRequest | FileSuggestionsRequest |
    RewindFilesRequest | CancelAsyncMessageRequest | ReadFileRequest | SeedReadStateRequest | McpSetServersRequest |
    RegisterRepoRootRequest | ReloadPluginsRequest | ReloadSkillsRequest | ReloadOutputStylesRequest |
    McpReconnectRequest | McpToggleRequest | SetHasSubscribersRequest | StopTaskRequest | BackgroundTasksRequest |
    GetTaskOutputRequest | ApplyFlagSettingsRequest | GetSettingsRequest | GetHooksListingRequest |
    UpdateSettingsRequest | ListPermissionRulesRequest | McpReadResourceRequest | GetStatusRequest |
    GetWorkspaceDiffRequest | GetPlanRequest | ExportConversationRequest | GenerateSessionTitleRequest |
    SideQuestionRequest | SetCwdRequest | GetMemoryDialogRequest | SetPromptSuggestionsPausedRequest |
    SubmitFeedbackRequest | EndSessionRequest | McpAuthenticateRequest | McpOAuthCallbackUrlRequest |
    McpClearAuthRequest | SetMcpPermissionModeOverrideRequest | MessageRatedRequest | ReloadConnectorsRequest |
    PromptDraftActivityRequest | OrUnknownRequest
)
