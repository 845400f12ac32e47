"""Permission rules, changes of rules, and the answers to a permission question.

Keys are camelCase, except in :class:`MatchedAskRule`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UnsetType

from claude_wire.messages.base import ByHand, Wire
from claude_wire.messages.control.catalog import SettingsParseError
from claude_wire.messages.unknown import OrUnknownObject


class PermissionRuleValue(Wire, frozen=True):
    """A permission rule for a tool or for some of its uses."""

    toolName: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for an MCP tool."""
    ruleContent: str | None = None
    """The part of a rule in parentheses, such as ``npm run *``; omit it for the whole tool, and never send null."""


class _RulesChange(Wire, tag_field="type", frozen=True):
    rules: list[PermissionRuleValue]
    """The rules to add, remove or replace others with."""
    # one of allow, deny, ask
    behavior: str
    """Whether the rules allow, deny or ask."""
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str
    """Where to store the change: in the session, or in a settings file."""


class AddRules(_RulesChange, tag="addRules", frozen=True):
    """Adds permission rules of one behavior."""


class ReplaceRules(_RulesChange, tag="replaceRules", frozen=True):
    """Replaces all permission rules of one behavior at one destination."""


class RemoveRules(_RulesChange, tag="removeRules", frozen=True):
    """Removes permission rules of one behavior."""


class SetMode(Wire, tag_field="type", tag="setMode", frozen=True):
    """Switches the permission mode. The CLI suggests ``acceptEdits`` when it asks about a file edit."""

    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    mode: str
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str
    """Where to store the change: in the session, or in a settings file."""


class _DirectoriesChange(Wire, tag_field="type", frozen=True):
    directories: list[str]
    """The paths of the directories."""
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str
    """Where to store the change: in the session, or in a settings file."""


class AddDirectories(_DirectoriesChange, tag="addDirectories", frozen=True):
    """Allows the session to work in more directories."""


class RemoveDirectories(_DirectoriesChange, tag="removeDirectories", frozen=True):
    """Forbids the session to work in directories that were allowed before."""


#: A change to the permissions. With the ``destination`` ``session``, the change lasts until the session ends. The three
#: ``...Settings`` destinations are files.
PermissionUpdate: TypeAlias = (
    AddRules | ReplaceRules | RemoveRules | SetMode | AddDirectories | RemoveDirectories | OrUnknownObject
)


class PermissionResultAllow(Wire, tag_field="behavior", tag="allow", frozen=True, metaclass=ByHand):
    """The answer to ``can_use_tool`` that allows the tool."""

    updatedInput: dict[str, Any] | None = None
    """The tool's input, changed or not; always send this field, because older CLIs require it."""
    updatedPermissions: list[PermissionUpdate] | None = None
    """Permission changes, so the CLI does not ask again."""
    toolUseID: str | None = None
    """The ``id`` of the tool call."""
    # one of user_temporary, user_permanent, user_reject
    decisionClassification: str | None = None
    """The user's choice: allow once, allow permanently, or refuse."""


class PermissionResultDeny(Wire, tag_field="behavior", tag="deny", frozen=True, metaclass=ByHand):
    """The answer to ``can_use_tool`` that refuses the tool."""

    message: str | UnsetType
    """The reason, which the model reads as the result; required by the CLI, UNSET if a received answer lacks it."""
    interrupt: bool | None = None
    """True also stops the turn."""
    toolUseID: str | None = None
    """The ``id`` of the tool call."""
    # one of user_temporary, user_permanent, user_reject
    decisionClassification: str | None = None
    """The user's choice: allow once, allow permanently, or refuse."""


#: The answer to ``can_use_tool``.
PermissionResult: TypeAlias = PermissionResultAllow | PermissionResultDeny | OrUnknownObject


class PermissionRuleDescription(Wire, frozen=True):
    """A description of a rule in three parts, of which the middle part should be emphasised."""

    prefix: str
    """Fixed words before the emphasis."""
    emphasis: str | None = None
    """Text from the rule, which may contain invisible characters."""
    suffix: str | None = None
    """Fixed words after the emphasis."""


class PermissionRuleEntry(Wire, kw_only=True, frozen=True):
    """A permission rule of the session, and its source."""

    # one of allow, deny, ask
    behavior: str
    """Whether the rule allows, denies or asks."""
    # one of session, localSettings, userSettings, command, projectSettings, flagSettings, policySettings, cliArg,
    # mcpMount, toolsNarrowing, mcpServerPolicy, hostCredential
    source: str
    """Where the rule comes from."""
    rule: str
    """The rule as stored, such as ``Bash(npm run *)``; may contain control characters."""
    description: PermissionRuleDescription | None = None
    """The rule in words."""
    # one of session, persistent, readonly
    editability: str
    """Whether the rule belongs to the session, is in a settings file, or is read-only."""
    notInEffect: bool | None = None
    """True if managed settings switch the rule off."""


class PermissionWorkspaceDirectory(Wire, frozen=True):
    """An additional directory that the session may work in."""

    path: str
    source: str
    """What allows it: a settings file such as ``localSettings``, ``cliArg`` for ``--add-dir``, or ``session``."""


class PermissionRulesState(Wire, kw_only=True, frozen=True):
    """All permission rules and additional directories of the session."""

    rules: list[PermissionRuleEntry]
    """The rules, each with its source."""
    workspaceDirectories: list[PermissionWorkspaceDirectory]
    """The additional directories."""
    originalCwd: str
    """The working directory at the start of the session."""
    managedOnly: bool
    """True if only the rules of managed settings count."""
    errors: list[SettingsParseError] | None = None
    """Why the CLI skipped settings files and their rules."""
    withheld: bool | None = None
    """True if the answer lacks rules and paths, because the connection stores answers."""


class MatchedAskRule(Wire, frozen=True):
    """The user's ``ask`` rule that caused a permission question.

    A host that approves automatically should pass such a question to a person.
    """

    source: str
    """Where the rule comes from, such as ``userSettings``."""
    tool_name: str
    """The name of the tool in the rule."""
    rule_content: str | None = None
    """The part of the rule in parentheses; None if the rule is for the whole tool."""
