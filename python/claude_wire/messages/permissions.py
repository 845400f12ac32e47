"""DOC module permissions"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from claude_wire.messages._base import Wire
from claude_wire.messages.catalog import SettingsParseError
from claude_wire.messages.unknown import UnknownObject

__all__ = [
    "AddDirectories",
    "AddRules",
    "MatchedAskRule",
    "PermissionResult",
    "PermissionResultAllow",
    "PermissionResultDeny",
    "PermissionRuleDescription",
    "PermissionRuleEntry",
    "PermissionRuleValue",
    "PermissionRulesState",
    "PermissionUpdate",
    "PermissionWorkspaceDirectory",
    "RemoveDirectories",
    "RemoveRules",
    "ReplaceRules",
    "SetMode",
]


class PermissionRuleValue(Wire, frozen=True):
    """DOC PermissionRuleValue"""

    toolName: str
    ruleContent: str | None = None


class AddRules(Wire, tag_field="type", tag="addRules", frozen=True):
    """DOC AddRules"""

    rules: list[PermissionRuleValue]
    # one of allow, deny, ask
    behavior: str
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str


class ReplaceRules(Wire, tag_field="type", tag="replaceRules", frozen=True):
    """DOC ReplaceRules"""

    rules: list[PermissionRuleValue]
    # one of allow, deny, ask
    behavior: str
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str


class RemoveRules(Wire, tag_field="type", tag="removeRules", frozen=True):
    """DOC RemoveRules"""

    rules: list[PermissionRuleValue]
    # one of allow, deny, ask
    behavior: str
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str


class SetMode(Wire, tag_field="type", tag="setMode", frozen=True):
    """DOC SetMode"""

    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    mode: str
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str


class AddDirectories(Wire, tag_field="type", tag="addDirectories", frozen=True):
    """DOC AddDirectories"""

    directories: list[str]
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str


class RemoveDirectories(Wire, tag_field="type", tag="removeDirectories", frozen=True):
    """DOC RemoveDirectories"""

    directories: list[str]
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str


KnownPermissionUpdate: TypeAlias = AddRules | ReplaceRules | RemoveRules | SetMode | AddDirectories | RemoveDirectories
if TYPE_CHECKING:
    PermissionUpdate: TypeAlias = KnownPermissionUpdate | UnknownObject
else:
    PermissionUpdate = KnownPermissionUpdate


class PermissionResultAllow(Wire, tag_field="behavior", tag="allow", frozen=True):
    """DOC PermissionResultAllow"""

    updatedInput: dict[str, Any] | None = None
    updatedPermissions: list[PermissionUpdate] | None = None
    toolUseID: str | None = None
    # one of user_temporary, user_permanent, user_reject
    decisionClassification: str | None = None


class PermissionResultDeny(Wire, tag_field="behavior", tag="deny", frozen=True):
    """DOC PermissionResultDeny"""

    message: str
    interrupt: bool | None = None
    toolUseID: str | None = None
    # one of user_temporary, user_permanent, user_reject
    decisionClassification: str | None = None


KnownPermissionResult: TypeAlias = PermissionResultAllow | PermissionResultDeny
if TYPE_CHECKING:
    PermissionResult: TypeAlias = KnownPermissionResult | UnknownObject
else:
    PermissionResult = KnownPermissionResult


class PermissionRuleDescription(Wire, frozen=True):
    """DOC PermissionRuleDescription"""

    prefix: str
    emphasis: str | None = None
    suffix: str | None = None


class PermissionRuleEntry(Wire, kw_only=True, frozen=True):
    """DOC PermissionRuleEntry"""

    # one of allow, deny, ask
    behavior: str
    # one of session, localSettings, userSettings, command, projectSettings, flagSettings, policySettings, cliArg,
    # mcpMount, toolsNarrowing, mcpServerPolicy, hostCredential
    source: str
    rule: str
    description: PermissionRuleDescription | None = None
    # one of session, persistent, readonly
    editability: str
    notInEffect: bool | None = None


class PermissionWorkspaceDirectory(Wire, frozen=True):
    """DOC PermissionWorkspaceDirectory"""

    path: str
    source: str


class PermissionRulesState(Wire, kw_only=True, frozen=True):
    """DOC PermissionRulesState"""

    rules: list[PermissionRuleEntry]
    workspaceDirectories: list[PermissionWorkspaceDirectory]
    originalCwd: str
    managedOnly: bool
    errors: list[SettingsParseError] | None = None
    withheld: bool | None = None


class MatchedAskRule(Wire, frozen=True):
    """DOC MatchedAskRule"""

    source: str
    tool_name: str
    rule_content: str | None = None
