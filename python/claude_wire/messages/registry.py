"""All messages: their union, their kinds and their names. `make generate` writes this file from the message classes."""

# This file is generated: it is neither linted nor formatted.
# ruff: noqa
# fmt: off

from __future__ import annotations

from typing import Literal, TypeAlias

from claude_wire.messages.blocks.content import (
    BrowserStateBlock, BrowserStateChange, BrowserStateChangeDownloadCompleted, BrowserStateChangeDownloadFailed,
    BrowserStateChangeDownloadStarted, BrowserStateChangeTabOpened, BrowserStateTabEntry, CompactionBlock,
    ContainerUploadBlock, ContentBlock, FallbackBlock, FallbackInfo, RedactedThinkingBlock, ThinkingBlock,
    ToolAdditionBlock, ToolChange, ToolChangeMcpToolReference, ToolChangeMcpToolsetReference, ToolChangeToolReference,
    ToolRemovalBlock, ToolResultBlock, ToolUseBlock,
)
from claude_wire.messages.blocks.media import (
    Base64ImageSource, Base64PdfSource, ContentBlockSource, DocumentBlock, DocumentSource, FileDocumentSource,
    FileImageSource, ImageBlock, ImageSource, ImageTransformations, PlainTextSource, SearchResultBlock, SourceContent,
    UrlImageSource, UrlPdfSource,
)
from claude_wire.messages.blocks.server_tools import (
    AdvisorRedactedResultBlock, AdvisorResult, AdvisorResultBlock, AdvisorToolResultBlock, AdvisorToolResultError,
    BashCodeExecutionOutputBlock, BashCodeExecutionResult, BashCodeExecutionResultBlock,
    BashCodeExecutionToolResultBlock, BashCodeExecutionToolResultError, Caller, CodeExecutionOutputBlock,
    CodeExecutionResult, CodeExecutionResultBlock, CodeExecutionToolResultBlock, CodeExecutionToolResultError,
    DirectCaller, EncryptedCodeExecutionResultBlock, McpTool, McpToolListingBlock, McpToolResultBlock, McpToolUseBlock,
    ServerToolCaller, ServerToolCaller20260120, ServerToolUseBlock, TextEditorCodeExecutionCreateResultBlock,
    TextEditorCodeExecutionResult, TextEditorCodeExecutionStrReplaceResultBlock, TextEditorCodeExecutionToolResultBlock,
    TextEditorCodeExecutionToolResultError, TextEditorCodeExecutionViewResultBlock, ToolReferenceBlock,
    ToolSearchResult, ToolSearchToolResultBlock, ToolSearchToolResultError, ToolSearchToolSearchResultBlock,
    WebFetchResult, WebFetchResultBlock, WebFetchToolResultBlock, WebFetchToolResultError, WebSearchResultBlock,
    WebSearchToolResultBlock, WebSearchToolResultError,
)
from claude_wire.messages.blocks.text import (
    CacheControl, Citation, CitationCharLocation, CitationContentBlockLocation, CitationPageLocation,
    CitationSearchResultLocation, CitationWebSearchResultLocation, CitationsConfig, TextBlock,
)
from claude_wire.messages.control.catalog import (
    AccountInfo, AgentDefinition, AgentInfo, LoadedPlugin, ModelInfo, PluginCacheImpact, SdkPluginConfig,
    SettingsParseError, SlashCommand,
)
from claude_wire.messages.control.cli_requests import (
    CanUseToolRequest, ElicitationRequest, ElicitationResponse, HookCallbackRequest, McpMessageRequest,
    McpMessageResponse, RequestUserDialogRequest, UserDialogCancelled, UserDialogCompleted, UserDialogResult,
)
from claude_wire.messages.control.context_usage import (
    ContextAgent, ContextApiUsage, ContextCategory, ContextDeferredTool, ContextGridCell, ContextMcpInstructions,
    ContextMcpTool, ContextMessageBreakdown, ContextNamedTokens, ContextSkill, ContextSkills, ContextSlashCommands,
    ContextToolCalls, GetContextUsageRequest, GetContextUsageResponse, GetUsageRequest, GetUsageResponse,
    ModelRateLimitWindow, RateLimitWindow, RateLimits, UsageBehavior, UsageBehaviors, UsageFix, UsagePeriod,
    UsageRecommendation, UsageShare,
)
from claude_wire.messages.control.envelopes import (
    ControlAnswer, ControlCancelRequest, ControlError, ControlRequest, ControlResponse, ControlSuccess, RequestId,
)
from claude_wire.messages.control.host_requests import (
    ApplyFlagSettingsRequest, BackgroundTasksRequest, BackgroundTasksResponse, CancelAsyncMessageRequest,
    CancelAsyncMessageResponse, FileSuggestionsRequest, FileSuggestionsResponse, GetBinaryVersionRequest,
    GetBinaryVersionResponse, GetHooksListingRequest, GetHooksListingResponse, GetSessionCostRequest,
    GetSessionCostResponse, GetSettingsRequest, GetSettingsResponse, GetTaskOutputRequest, GetTaskOutputResponse,
    HookBareMode, HookCallbackMatcher, HookEditable, HookEventCount, HookEventInfo, HookListing, HookPolicy,
    HookSafeMode, InitializeRequest, InitializeResponse, InterruptRequest, InterruptResponse, ListModelsRequest,
    ListModelsResponse, ListPermissionRulesRequest, ListPermissionRulesResponse, McpCallRequest, McpReadResourceRequest,
    McpReadResourceResponse, McpReconnectRequest, McpSetServersRequest, McpSetServersResponse, McpStatusRequest,
    McpStatusResponse, McpToggleRequest, ReadFileRequest, ReadFileResponse, RegisterRepoRootRequest,
    ReloadOutputStylesRequest, ReloadOutputStylesResponse, ReloadPluginsRequest, ReloadPluginsResponse,
    ReloadSkillsRequest, ReloadSkillsResponse, RenameSessionRequest, RewindFilesRequest, RewindFilesResponse,
    SeedReadStateRequest, SetColorRequest, SetHasSubscribersRequest, SetMaxThinkingTokensRequest, SetModelRequest,
    SetModelResponse, SetPermissionModeRequest, SetPermissionModeResponse, StopTaskRequest, UpdateSettingsRequest,
)
from claude_wire.messages.control.mcp import (
    McpClaudeAIProxyServerConfig, McpHttpServerConfig, McpInputFile, McpOutputFile, McpResourceContent,
    McpSSEServerConfig, McpSdkServerConfig, McpServerConfig, McpServerInfo, McpServerProvenance, McpServerStatus,
    McpServerToolPolicy, McpStdioServerConfig, McpToolAnnotations, McpToolInfo, SdkMcpServerConfig, SdkMcpServerManifest,
)
from claude_wire.messages.control.payload import (
    ControlRequestPayload,
)
from claude_wire.messages.control.permissions import (
    AddDirectories, AddRules, MatchedAskRule, PermissionResult, PermissionResultAllow, PermissionResultDeny,
    PermissionRuleDescription, PermissionRuleEntry, PermissionRuleValue, PermissionRulesState, PermissionUpdate,
    PermissionWorkspaceDirectory, RemoveDirectories, RemoveRules, ReplaceRules, SetMode,
)
from claude_wire.messages.control.request_body import (
    ControlRequestBody,
)
from claude_wire.messages.control.undeclared_requests import (
    EndSessionRequest, ExportConversationRequest, GenerateSessionTitleRequest, GetMemoryDialogRequest, GetPlanRequest,
    GetStatusRequest, GetWorkspaceDiffRequest, McpAuthenticateRequest, McpClearAuthRequest, McpOAuthCallbackUrlRequest,
    MessageRatedRequest, PromptDraftActivityRequest, ReloadConnectorsRequest, SetCwdRequest,
    SetMcpPermissionModeOverrideRequest, SetPromptSuggestionsPausedRequest, SideQuestionRequest, SubmitFeedbackRequest,
)
from claude_wire.messages.conversation.api import (
    ApiMessage, CacheMissMessagesChanged, CacheMissModelChanged, CacheMissPreviousMessageNotFound, CacheMissReason,
    CacheMissSystemChanged, CacheMissToolsChanged, CacheMissUnavailable, ClearThinkingEdit, ClearToolUsesEdit,
    Container, ContainerSkill, ContextEdit, ContextManagementResponse, Diagnostics, InputTransformation, MessageParam,
    RefusalStopDetails, ThinkingDroppedInputTransformation, ThinkingMismatchAllowedInputTransformation,
)
from claude_wire.messages.conversation.events import (
    ApiErrorInfo, CitationsDelta, CompactionDelta, ContentBlockDeltaEvent, ContentBlockStartEvent,
    ContentBlockStopEvent, Delta, ErrorEvent, Event, InputJsonDelta, MessageDelta, MessageDeltaEvent, MessageStartEvent,
    MessageStopEvent, PingEvent, SignatureDelta, TextDelta, ThinkingDelta,
)
from claude_wire.messages.conversation.messages import (
    AssistantMessage, StreamEvent, UserMessage,
)
from claude_wire.messages.conversation.origins import (
    AutoContinuationOrigin, ChannelOrigin, CoordinatorOrigin, HumanOrigin, MessageOrigin, ObserverActivityOrigin,
    ObserverOrigin, PeerOrigin, TaskNotificationOrigin, UnclassifiedOrigin,
)
from claude_wire.messages.conversation.results import (
    DeferredToolUse, ErrorInfo, InvalidConfigFile, PermissionDenial, ResultCancelled, ResultError,
    ResultErrorDuringExecution, ResultErrorMaxBudgetUsd, ResultErrorMaxStructuredOutputRetries, ResultErrorMaxTurns,
    ResultMessage, ResultSuccess,
)
from claude_wire.messages.conversation.usage import (
    AdvisorMessageIterationUsage, CacheCreation, CompactionIterationUsage, ContextMemoryFile, ContextOverLimit,
    ContextUsage, ContextUsageAgent, ContextUsageCategory, ContextUsageMcpTool, ContextUsageSkill, DisplayName,
    ExtraUsage, FallbackCreditNotApplied, FallbackCreditRedeemed, FallbackCreditStatus, FallbackCreditUsage,
    FallbackMessageIterationUsage, MessageDeltaUsage, MessageIterationUsage, ModelUsage, OutputTokensDetails,
    ServerToolUsage, SessionUsage, TaskUsage, Usage, UsageIteration, UsageLimit, UsageLimitScope, UsageReport,
    UsageReportLimits,
)
from claude_wire.messages.dialects import (
    ConsolidationMessage, ControlMessage, InjectedMessage, InterruptedMessage, PermissionReply,
    PermissionRequestMessage, QueuedMessage, SystemErrorMessage, SystemToolResultMessage, ToolResultMessage,
)
from claude_wire.messages.hooks.inputs import (
    ConfigChangeHookInput, CwdChangedHookInput, DirectoryAddedHookInput, ElicitationHookInput,
    ElicitationResultHookInput, FileChangedHookInput, HookInput, InstructionsLoadedHookInput, MessageDisplayHookInput,
    NotificationHookInput, PostCompactHookInput, PostModelSwitchHookInput, PreCompactHookInput, PreModelSwitchHookInput,
    SessionEndHookInput, SessionStartHookInput, SetupHookInput, StopFailureHookInput, StopHookInput,
    SubagentStartHookInput, SubagentStopHookInput, TaskCompletedHookInput, TaskCreatedHookInput, TeammateIdleHookInput,
    UserPromptExpansionHookInput, UserPromptSubmitHookInput, WorktreeCreateHookInput, WorktreeRemoveHookInput,
)
from claude_wire.messages.hooks.outputs import (
    AsyncHookOutput, CwdChangedHookSpecificOutput, ElicitationHookSpecificOutput, ElicitationResultHookSpecificOutput,
    FileChangedHookSpecificOutput, HookOutput, HookSpecificOutput, MessageDisplayHookSpecificOutput,
    NotificationHookSpecificOutput, PermissionDecision, PermissionDecisionAllow, PermissionDecisionDeny,
    PermissionDeniedHookSpecificOutput, PermissionRequestHookSpecificOutput, PostModelSwitchHookSpecificOutput,
    PostToolBatchHookSpecificOutput, PostToolUseFailureHookSpecificOutput, PostToolUseHookSpecificOutput,
    PreModelSwitchHookSpecificOutput, PreToolUseHookSpecificOutput, SessionStartHookSpecificOutput,
    SetupHookSpecificOutput, StopHookSpecificOutput, SubagentStartHookSpecificOutput, SubagentStopHookSpecificOutput,
    UserPromptExpansionHookSpecificOutput, UserPromptSubmitHookSpecificOutput, WorktreeCreateHookSpecificOutput,
)
from claude_wire.messages.hooks.tool_inputs import (
    HookEffort, HookInputBase, PermissionDeniedHookInput, PermissionRequestHookInput, PostToolBatchHookInput,
    PostToolBatchToolCall, PostToolUseFailureHookInput, PostToolUseHookInput, PreToolUseHookInput,
)
from claude_wire.messages.invalid import (
    InvalidKind, InvalidLine,
)
from claude_wire.messages.notices import (
    ActiveGoal, ActiveGoalMessage, AuthCredential, AuthMessage, AuthStatusMessage, CommandLifecycleMessage,
    ConversationResetMessage, KeepAlive, PromptSuggestionMessage, RateLimitEvent, RateLimitInfo, SubagentRetry,
    ToolProgressMessage, ToolUseSummaryMessage, TranscriptMirrorMessage, UnifiedRateLimitWindow,
    UpdateEnvironmentVariablesMessage,
)
from claude_wire.messages.system import (
    ApiRetryMessage, BackgroundTask, BackgroundTaskSummary, BackgroundTasksChangedMessage, CommandsChangedMessage,
    CompactBoundaryMessage, CompactMetadata, ControlRequestProgressMessage, ElicitationCompleteMessage,
    FilesPersistedMessage, HookProgressMessage, HookResponseMessage, HookStartedMessage, InformationalMessage,
    InitMcpServer, InitMessage, InitPlugin, LocalCommandOutputMessage, McpResourceLink, MemoryRecallMessage,
    MirrorErrorMessage, MirrorKey, ModelFallbackMessage, ModelRefusalFallbackMessage, ModelRefusalNoFallbackMessage,
    NoResponse, NotificationMessage, PermissionDeniedMessage, PersistFailure, PersistedFile, PluginError,
    PluginInstallMessage, PluginManagedLock, PreservedMessages, PreservedSegment, RecalledMemory, SessionCronSummary,
    SessionStateChangedMessage, SessionTitleChangedMessage, SessionWritesLostMessage, StatusMessage, SystemMessage,
    TaskListStatus, TaskListStatusesMessage, TaskNotificationMessage, TaskPatch, TaskProgressMessage,
    TaskStartedMessage, TaskUpdatedMessage, ThinkingTokensMessage, UiInvalidateMessage, WorkerShuttingDownMessage,
)
from claude_wire.messages.unknown import (
    Unknown, UnknownBlock, UnknownDelta, UnknownEvent, UnknownHookInput, UnknownMessage, UnknownObject, UnknownRequest,
)

#: Messages that their ``type`` alone identifies.
TypedMessage: TypeAlias = (
    ControlRequest | ControlCancelRequest | ControlResponse | UserMessage | AssistantMessage | StreamEvent |
    ControlMessage | ToolResultMessage | KeepAlive | ToolProgressMessage | AuthStatusMessage | ToolUseSummaryMessage |
    RateLimitEvent | PromptSuggestionMessage | ConversationResetMessage | ActiveGoalMessage | CommandLifecycleMessage |
    TranscriptMirrorMessage | AuthMessage | UpdateEnvironmentVariablesMessage
)

#: Messages of type ``system``, identified by their ``subtype``.
SystemSubtype: TypeAlias = (
    QueuedMessage | InjectedMessage | ConsolidationMessage | InterruptedMessage | SystemToolResultMessage |
    SystemErrorMessage | PermissionRequestMessage | InitMessage | PluginInstallMessage | StatusMessage |
    ControlRequestProgressMessage | LocalCommandOutputMessage | ThinkingTokensMessage | ElicitationCompleteMessage |
    PermissionDeniedMessage | SessionStateChangedMessage | SessionTitleChangedMessage | WorkerShuttingDownMessage |
    CommandsChangedMessage | NotificationMessage | InformationalMessage | UiInvalidateMessage | FilesPersistedMessage |
    SessionWritesLostMessage | MemoryRecallMessage | MirrorErrorMessage | TaskStartedMessage | TaskProgressMessage |
    TaskUpdatedMessage | TaskNotificationMessage | BackgroundTasksChangedMessage | TaskListStatusesMessage |
    HookStartedMessage | HookProgressMessage | HookResponseMessage | CompactBoundaryMessage | ApiRetryMessage |
    ModelRefusalFallbackMessage | ModelRefusalNoFallbackMessage | ModelFallbackMessage
)

#: Messages of type ``result``, identified by their ``subtype``. Any other subtype is a plain ``ResultMessage``.
ResultSubtype: TypeAlias = (
    ResultSuccess | ResultErrorDuringExecution | ResultErrorMaxTurns | ResultErrorMaxBudgetUsd |
    ResultErrorMaxStructuredOutputRetries | ResultError | ResultCancelled
)

#: The types that a line can decode to.
Message: TypeAlias = TypedMessage | SystemSubtype | ResultSubtype | ResultMessage | PermissionReply | UnknownMessage

#: The names that ``only`` accepts: the kinds of all lines, and groups of kinds such as ``"system"``.
KindName: TypeAlias = Literal[
    "active_goal", "assistant", "auth", "auth_status", "command_lifecycle", "control", "control_cancel_request",
    "control_request", "control_response", "conversation_reset", "keep_alive", "prompt_suggestion", "rate_limit_event",
    "result", "stream_event", "system", "tool_progress", "tool_result", "tool_use_summary", "transcript_mirror",
    "update_environment_variables", "user",
    "system/api_retry", "system/background_tasks_changed", "system/commands_changed", "system/compact_boundary",
    "system/consolidation", "system/control_request_progress", "system/elicitation_complete", "system/error",
    "system/files_persisted", "system/hook_progress", "system/hook_response", "system/hook_started",
    "system/informational", "system/init", "system/injected", "system/interrupted", "system/local_command_output",
    "system/memory_recall", "system/mirror_error", "system/model_fallback", "system/model_refusal_fallback",
    "system/model_refusal_no_fallback", "system/notification", "system/permission_denied", "system/permission_request",
    "system/plugin_install", "system/queued", "system/session_state_changed", "system/session_title_changed",
    "system/session_writes_lost", "system/status", "system/task_list_statuses", "system/task_notification",
    "system/task_progress", "system/task_started", "system/task_updated", "system/thinking_tokens",
    "system/tool_result", "system/ui_invalidate", "system/worker_shutting_down",
    "result/cancelled", "result/error", "result/error_during_execution", "result/error_max_budget_usd",
    "result/error_max_structured_output_retries", "result/error_max_turns", "result/success",
    "stream_event/content_block_delta", "stream_event/content_block_start", "stream_event/content_block_stop",
    "stream_event/error", "stream_event/message_delta", "stream_event/message_start", "stream_event/message_stop",
    "stream_event/ping",
    "stream_event/content_block_start/advisor_tool_result",
    "stream_event/content_block_start/bash_code_execution_tool_result",
    "stream_event/content_block_start/browser_state", "stream_event/content_block_start/code_execution_tool_result",
    "stream_event/content_block_start/compaction", "stream_event/content_block_start/container_upload",
    "stream_event/content_block_start/document", "stream_event/content_block_start/fallback",
    "stream_event/content_block_start/image", "stream_event/content_block_start/mcp_tool_listing",
    "stream_event/content_block_start/mcp_tool_result", "stream_event/content_block_start/mcp_tool_use",
    "stream_event/content_block_start/redacted_thinking", "stream_event/content_block_start/search_result",
    "stream_event/content_block_start/server_tool_use", "stream_event/content_block_start/text",
    "stream_event/content_block_start/text_editor_code_execution_tool_result",
    "stream_event/content_block_start/thinking", "stream_event/content_block_start/tool_addition",
    "stream_event/content_block_start/tool_reference", "stream_event/content_block_start/tool_removal",
    "stream_event/content_block_start/tool_result", "stream_event/content_block_start/tool_search_tool_result",
    "stream_event/content_block_start/tool_use", "stream_event/content_block_start/web_fetch_tool_result",
    "stream_event/content_block_start/web_search_tool_result",
    "stream_event/content_block_delta/citations_delta", "stream_event/content_block_delta/compaction_delta",
    "stream_event/content_block_delta/input_json_delta", "stream_event/content_block_delta/signature_delta",
    "stream_event/content_block_delta/text_delta", "stream_event/content_block_delta/thinking_delta",
    "control_request/apply_flag_settings", "control_request/background_tasks", "control_request/can_use_tool",
    "control_request/cancel_async_message", "control_request/elicitation", "control_request/end_session",
    "control_request/export_conversation", "control_request/file_suggestions", "control_request/generate_session_title",
    "control_request/get_binary_version", "control_request/get_context_usage", "control_request/get_hooks_listing",
    "control_request/get_memory_dialog", "control_request/get_plan", "control_request/get_session_cost",
    "control_request/get_settings", "control_request/get_status", "control_request/get_task_output",
    "control_request/get_usage", "control_request/get_workspace_diff", "control_request/hook_callback",
    "control_request/initialize", "control_request/interrupt", "control_request/list_models",
    "control_request/list_permission_rules", "control_request/mcp_authenticate", "control_request/mcp_call",
    "control_request/mcp_clear_auth", "control_request/mcp_message", "control_request/mcp_oauth_callback_url",
    "control_request/mcp_read_resource", "control_request/mcp_reconnect", "control_request/mcp_set_servers",
    "control_request/mcp_status", "control_request/mcp_toggle", "control_request/message_rated",
    "control_request/prompt_draft_activity", "control_request/read_file", "control_request/register_repo_root",
    "control_request/reload_connectors", "control_request/reload_output_styles", "control_request/reload_plugins",
    "control_request/reload_skills", "control_request/rename_session", "control_request/request_user_dialog",
    "control_request/rewind_files", "control_request/seed_read_state", "control_request/set_color",
    "control_request/set_cwd", "control_request/set_has_subscribers", "control_request/set_max_thinking_tokens",
    "control_request/set_mcp_permission_mode_override", "control_request/set_model",
    "control_request/set_permission_mode", "control_request/set_prompt_suggestions_paused",
    "control_request/side_question", "control_request/stop_task", "control_request/submit_feedback",
    "control_request/update_settings",
    "control_response/error", "control_response/success",
]

__all__ = [
    "Message",
    "BrowserStateBlock", "BrowserStateChange", "BrowserStateChangeDownloadCompleted",
    "BrowserStateChangeDownloadFailed", "BrowserStateChangeDownloadStarted", "BrowserStateChangeTabOpened",
    "BrowserStateTabEntry", "CompactionBlock", "ContainerUploadBlock", "ContentBlock", "FallbackBlock", "FallbackInfo",
    "RedactedThinkingBlock", "ThinkingBlock", "ToolAdditionBlock", "ToolChange", "ToolChangeMcpToolReference",
    "ToolChangeMcpToolsetReference", "ToolChangeToolReference", "ToolRemovalBlock", "ToolResultBlock", "ToolUseBlock",
    "Base64ImageSource", "Base64PdfSource", "ContentBlockSource", "DocumentBlock", "DocumentSource",
    "FileDocumentSource", "FileImageSource", "ImageBlock", "ImageSource", "ImageTransformations", "PlainTextSource",
    "SearchResultBlock", "SourceContent", "UrlImageSource", "UrlPdfSource",
    "AdvisorRedactedResultBlock", "AdvisorResult", "AdvisorResultBlock", "AdvisorToolResultBlock",
    "AdvisorToolResultError", "BashCodeExecutionOutputBlock", "BashCodeExecutionResult", "BashCodeExecutionResultBlock",
    "BashCodeExecutionToolResultBlock", "BashCodeExecutionToolResultError", "Caller", "CodeExecutionOutputBlock",
    "CodeExecutionResult", "CodeExecutionResultBlock", "CodeExecutionToolResultBlock", "CodeExecutionToolResultError",
    "DirectCaller", "EncryptedCodeExecutionResultBlock", "McpTool", "McpToolListingBlock", "McpToolResultBlock",
    "McpToolUseBlock", "ServerToolCaller", "ServerToolCaller20260120", "ServerToolUseBlock",
    "TextEditorCodeExecutionCreateResultBlock", "TextEditorCodeExecutionResult",
    "TextEditorCodeExecutionStrReplaceResultBlock", "TextEditorCodeExecutionToolResultBlock",
    "TextEditorCodeExecutionToolResultError", "TextEditorCodeExecutionViewResultBlock", "ToolReferenceBlock",
    "ToolSearchResult", "ToolSearchToolResultBlock", "ToolSearchToolResultError", "ToolSearchToolSearchResultBlock",
    "WebFetchResult", "WebFetchResultBlock", "WebFetchToolResultBlock", "WebFetchToolResultError",
    "WebSearchResultBlock", "WebSearchToolResultBlock", "WebSearchToolResultError",
    "CacheControl", "Citation", "CitationCharLocation", "CitationContentBlockLocation", "CitationPageLocation",
    "CitationSearchResultLocation", "CitationWebSearchResultLocation", "CitationsConfig", "TextBlock",
    "AccountInfo", "AgentDefinition", "AgentInfo", "LoadedPlugin", "ModelInfo", "PluginCacheImpact", "SdkPluginConfig",
    "SettingsParseError", "SlashCommand",
    "CanUseToolRequest", "ElicitationRequest", "ElicitationResponse", "HookCallbackRequest", "McpMessageRequest",
    "McpMessageResponse", "RequestUserDialogRequest", "UserDialogCancelled", "UserDialogCompleted", "UserDialogResult",
    "ContextAgent", "ContextApiUsage", "ContextCategory", "ContextDeferredTool", "ContextGridCell",
    "ContextMcpInstructions", "ContextMcpTool", "ContextMessageBreakdown", "ContextNamedTokens", "ContextSkill",
    "ContextSkills", "ContextSlashCommands", "ContextToolCalls", "GetContextUsageRequest", "GetContextUsageResponse",
    "GetUsageRequest", "GetUsageResponse", "ModelRateLimitWindow", "RateLimitWindow", "RateLimits", "UsageBehavior",
    "UsageBehaviors", "UsageFix", "UsagePeriod", "UsageRecommendation", "UsageShare",
    "ControlAnswer", "ControlCancelRequest", "ControlError", "ControlRequest", "ControlResponse", "ControlSuccess",
    "RequestId",
    "ApplyFlagSettingsRequest", "BackgroundTasksRequest", "BackgroundTasksResponse", "CancelAsyncMessageRequest",
    "CancelAsyncMessageResponse", "FileSuggestionsRequest", "FileSuggestionsResponse", "GetBinaryVersionRequest",
    "GetBinaryVersionResponse", "GetHooksListingRequest", "GetHooksListingResponse", "GetSessionCostRequest",
    "GetSessionCostResponse", "GetSettingsRequest", "GetSettingsResponse", "GetTaskOutputRequest",
    "GetTaskOutputResponse", "HookBareMode", "HookCallbackMatcher", "HookEditable", "HookEventCount", "HookEventInfo",
    "HookListing", "HookPolicy", "HookSafeMode", "InitializeRequest", "InitializeResponse", "InterruptRequest",
    "InterruptResponse", "ListModelsRequest", "ListModelsResponse", "ListPermissionRulesRequest",
    "ListPermissionRulesResponse", "McpCallRequest", "McpReadResourceRequest", "McpReadResourceResponse",
    "McpReconnectRequest", "McpSetServersRequest", "McpSetServersResponse", "McpStatusRequest", "McpStatusResponse",
    "McpToggleRequest", "ReadFileRequest", "ReadFileResponse", "RegisterRepoRootRequest", "ReloadOutputStylesRequest",
    "ReloadOutputStylesResponse", "ReloadPluginsRequest", "ReloadPluginsResponse", "ReloadSkillsRequest",
    "ReloadSkillsResponse", "RenameSessionRequest", "RewindFilesRequest", "RewindFilesResponse", "SeedReadStateRequest",
    "SetColorRequest", "SetHasSubscribersRequest", "SetMaxThinkingTokensRequest", "SetModelRequest", "SetModelResponse",
    "SetPermissionModeRequest", "SetPermissionModeResponse", "StopTaskRequest", "UpdateSettingsRequest",
    "McpClaudeAIProxyServerConfig", "McpHttpServerConfig", "McpInputFile", "McpOutputFile", "McpResourceContent",
    "McpSSEServerConfig", "McpSdkServerConfig", "McpServerConfig", "McpServerInfo", "McpServerProvenance",
    "McpServerStatus", "McpServerToolPolicy", "McpStdioServerConfig", "McpToolAnnotations", "McpToolInfo",
    "SdkMcpServerConfig", "SdkMcpServerManifest",
    "ControlRequestPayload",
    "AddDirectories", "AddRules", "MatchedAskRule", "PermissionResult", "PermissionResultAllow", "PermissionResultDeny",
    "PermissionRuleDescription", "PermissionRuleEntry", "PermissionRuleValue", "PermissionRulesState",
    "PermissionUpdate", "PermissionWorkspaceDirectory", "RemoveDirectories", "RemoveRules", "ReplaceRules", "SetMode",
    "ControlRequestBody",
    "EndSessionRequest", "ExportConversationRequest", "GenerateSessionTitleRequest", "GetMemoryDialogRequest",
    "GetPlanRequest", "GetStatusRequest", "GetWorkspaceDiffRequest", "McpAuthenticateRequest", "McpClearAuthRequest",
    "McpOAuthCallbackUrlRequest", "MessageRatedRequest", "PromptDraftActivityRequest", "ReloadConnectorsRequest",
    "SetCwdRequest", "SetMcpPermissionModeOverrideRequest", "SetPromptSuggestionsPausedRequest", "SideQuestionRequest",
    "SubmitFeedbackRequest",
    "ApiMessage", "CacheMissMessagesChanged", "CacheMissModelChanged", "CacheMissPreviousMessageNotFound",
    "CacheMissReason", "CacheMissSystemChanged", "CacheMissToolsChanged", "CacheMissUnavailable", "ClearThinkingEdit",
    "ClearToolUsesEdit", "Container", "ContainerSkill", "ContextEdit", "ContextManagementResponse", "Diagnostics",
    "InputTransformation", "MessageParam", "RefusalStopDetails", "ThinkingDroppedInputTransformation",
    "ThinkingMismatchAllowedInputTransformation",
    "ApiErrorInfo", "CitationsDelta", "CompactionDelta", "ContentBlockDeltaEvent", "ContentBlockStartEvent",
    "ContentBlockStopEvent", "Delta", "ErrorEvent", "Event", "InputJsonDelta", "MessageDelta", "MessageDeltaEvent",
    "MessageStartEvent", "MessageStopEvent", "PingEvent", "SignatureDelta", "TextDelta", "ThinkingDelta",
    "AssistantMessage", "StreamEvent", "UserMessage",
    "AutoContinuationOrigin", "ChannelOrigin", "CoordinatorOrigin", "HumanOrigin", "MessageOrigin",
    "ObserverActivityOrigin", "ObserverOrigin", "PeerOrigin", "TaskNotificationOrigin", "UnclassifiedOrigin",
    "DeferredToolUse", "ErrorInfo", "InvalidConfigFile", "PermissionDenial", "ResultCancelled", "ResultError",
    "ResultErrorDuringExecution", "ResultErrorMaxBudgetUsd", "ResultErrorMaxStructuredOutputRetries",
    "ResultErrorMaxTurns", "ResultMessage", "ResultSuccess",
    "AdvisorMessageIterationUsage", "CacheCreation", "CompactionIterationUsage", "ContextMemoryFile",
    "ContextOverLimit", "ContextUsage", "ContextUsageAgent", "ContextUsageCategory", "ContextUsageMcpTool",
    "ContextUsageSkill", "DisplayName", "ExtraUsage", "FallbackCreditNotApplied", "FallbackCreditRedeemed",
    "FallbackCreditStatus", "FallbackCreditUsage", "FallbackMessageIterationUsage", "MessageDeltaUsage",
    "MessageIterationUsage", "ModelUsage", "OutputTokensDetails", "ServerToolUsage", "SessionUsage", "TaskUsage",
    "Usage", "UsageIteration", "UsageLimit", "UsageLimitScope", "UsageReport", "UsageReportLimits",
    "ConsolidationMessage", "ControlMessage", "InjectedMessage", "InterruptedMessage", "PermissionReply",
    "PermissionRequestMessage", "QueuedMessage", "SystemErrorMessage", "SystemToolResultMessage", "ToolResultMessage",
    "ConfigChangeHookInput", "CwdChangedHookInput", "DirectoryAddedHookInput", "ElicitationHookInput",
    "ElicitationResultHookInput", "FileChangedHookInput", "HookInput", "InstructionsLoadedHookInput",
    "MessageDisplayHookInput", "NotificationHookInput", "PostCompactHookInput", "PostModelSwitchHookInput",
    "PreCompactHookInput", "PreModelSwitchHookInput", "SessionEndHookInput", "SessionStartHookInput", "SetupHookInput",
    "StopFailureHookInput", "StopHookInput", "SubagentStartHookInput", "SubagentStopHookInput",
    "TaskCompletedHookInput", "TaskCreatedHookInput", "TeammateIdleHookInput", "UserPromptExpansionHookInput",
    "UserPromptSubmitHookInput", "WorktreeCreateHookInput", "WorktreeRemoveHookInput",
    "AsyncHookOutput", "CwdChangedHookSpecificOutput", "ElicitationHookSpecificOutput",
    "ElicitationResultHookSpecificOutput", "FileChangedHookSpecificOutput", "HookOutput", "HookSpecificOutput",
    "MessageDisplayHookSpecificOutput", "NotificationHookSpecificOutput", "PermissionDecision",
    "PermissionDecisionAllow", "PermissionDecisionDeny", "PermissionDeniedHookSpecificOutput",
    "PermissionRequestHookSpecificOutput", "PostModelSwitchHookSpecificOutput", "PostToolBatchHookSpecificOutput",
    "PostToolUseFailureHookSpecificOutput", "PostToolUseHookSpecificOutput", "PreModelSwitchHookSpecificOutput",
    "PreToolUseHookSpecificOutput", "SessionStartHookSpecificOutput", "SetupHookSpecificOutput",
    "StopHookSpecificOutput", "SubagentStartHookSpecificOutput", "SubagentStopHookSpecificOutput",
    "UserPromptExpansionHookSpecificOutput", "UserPromptSubmitHookSpecificOutput", "WorktreeCreateHookSpecificOutput",
    "HookEffort", "HookInputBase", "PermissionDeniedHookInput", "PermissionRequestHookInput", "PostToolBatchHookInput",
    "PostToolBatchToolCall", "PostToolUseFailureHookInput", "PostToolUseHookInput", "PreToolUseHookInput",
    "InvalidKind", "InvalidLine",
    "ActiveGoal", "ActiveGoalMessage", "AuthCredential", "AuthMessage", "AuthStatusMessage", "CommandLifecycleMessage",
    "ConversationResetMessage", "KeepAlive", "PromptSuggestionMessage", "RateLimitEvent", "RateLimitInfo",
    "SubagentRetry", "ToolProgressMessage", "ToolUseSummaryMessage", "TranscriptMirrorMessage",
    "UnifiedRateLimitWindow", "UpdateEnvironmentVariablesMessage",
    "ApiRetryMessage", "BackgroundTask", "BackgroundTaskSummary", "BackgroundTasksChangedMessage",
    "CommandsChangedMessage", "CompactBoundaryMessage", "CompactMetadata", "ControlRequestProgressMessage",
    "ElicitationCompleteMessage", "FilesPersistedMessage", "HookProgressMessage", "HookResponseMessage",
    "HookStartedMessage", "InformationalMessage", "InitMcpServer", "InitMessage", "InitPlugin",
    "LocalCommandOutputMessage", "McpResourceLink", "MemoryRecallMessage", "MirrorErrorMessage", "MirrorKey",
    "ModelFallbackMessage", "ModelRefusalFallbackMessage", "ModelRefusalNoFallbackMessage", "NoResponse",
    "NotificationMessage", "PermissionDeniedMessage", "PersistFailure", "PersistedFile", "PluginError",
    "PluginInstallMessage", "PluginManagedLock", "PreservedMessages", "PreservedSegment", "RecalledMemory",
    "SessionCronSummary", "SessionStateChangedMessage", "SessionTitleChangedMessage", "SessionWritesLostMessage",
    "StatusMessage", "SystemMessage", "TaskListStatus", "TaskListStatusesMessage", "TaskNotificationMessage",
    "TaskPatch", "TaskProgressMessage", "TaskStartedMessage", "TaskUpdatedMessage", "ThinkingTokensMessage",
    "UiInvalidateMessage", "WorkerShuttingDownMessage",
    "Unknown", "UnknownBlock", "UnknownDelta", "UnknownEvent", "UnknownHookInput", "UnknownMessage", "UnknownObject",
    "UnknownRequest",
]
