"""Permission rules, changes to them, and the answers to a permission question.

Member names are camelCase, except in :class:`MatchedAskRule`, which is part of a snake_case request.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UnsetType

from claude_wire.messages.base import ByHand, Wire
from claude_wire.messages.control.catalog import SettingsParseError
from claude_wire.messages.unknown import OrUnknownObject


class PermissionRuleValue(Wire, frozen=True):
    """One permission rule: a tool, and optionally which of its uses."""

    toolName: str
    """The name of the tool; ``mcp__SERVER__TOOL`` for one of an MCP server."""
    ruleContent: str | None = None
    """The part of a rule in parentheses, such as ``npm run *``. Leave it out for the whole tool; never send null."""


class _RulesChange(Wire, tag_field="type", frozen=True):
    rules: list[PermissionRuleValue]
    """The rules to add, to remove, or to put in place of others."""
    # one of allow, deny, ask
    behavior: str
    """Whether the rules allow, deny or ask."""
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str
    """Where the change is stored: in the session, or in a settings file."""


class AddRules(_RulesChange, tag="addRules", frozen=True):
    """Adds permission rules of one behavior; see :data:`PermissionUpdate`."""


class ReplaceRules(_RulesChange, tag="replaceRules", frozen=True):
    """Replaces all permission rules of one behavior at one destination; see :data:`PermissionUpdate`."""


class RemoveRules(_RulesChange, tag="removeRules", frozen=True):
    """Removes permission rules of one behavior; see :data:`PermissionUpdate`."""


class SetMode(Wire, tag_field="type", tag="setMode", frozen=True):
    """Switches the permission mode, for instance to ``acceptEdits``; see :data:`PermissionUpdate`.

    The CLI suggests it next to file edits.
    """

    # one of default, acceptEdits, bypassPermissions, plan, dontAsk, auto
    mode: str
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str
    """Where the change is stored: in the session, or in a settings file."""


class _DirectoriesChange(Wire, tag_field="type", frozen=True):
    directories: list[str]
    """The paths of the directories."""
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str
    """Where the change is stored: in the session, or in a settings file."""


class AddDirectories(_DirectoriesChange, tag="addDirectories", frozen=True):
    """Adds directories to those that the session may work in; see :data:`PermissionUpdate`."""


class RemoveDirectories(_DirectoriesChange, tag="removeDirectories", frozen=True):
    """Removes directories from those that the session may work in; see :data:`PermissionUpdate`."""


#: A change to the permission rules. ``destination`` says where the change is stored: ``session`` lasts until the end of
#: the session, the three ``...Settings`` are files.
PermissionUpdate: TypeAlias = (
    AddRules | ReplaceRules | RemoveRules | SetMode | AddDirectories | RemoveDirectories | OrUnknownObject
)


class PermissionResultAllow(Wire, tag_field="behavior", tag="allow", frozen=True, metaclass=ByHand):
    """The answer to ``can_use_tool`` that lets the tool run."""

    updatedInput: dict[str, Any] | None = None
    """The input that the tool runs with, changed or not. Send it always, because older CLIs require it."""
    updatedPermissions: list[PermissionUpdate] | None = None
    """Permissions to grant along with this call, so that the CLI does not ask again."""
    toolUseID: str | None = None
    """The ``id`` of the tool call."""
    # one of user_temporary, user_permanent, user_reject
    decisionClassification: str | None = None
    """What the user chose: yes once, yes for good, or no."""


class PermissionResultDeny(Wire, tag_field="behavior", tag="deny", frozen=True, metaclass=ByHand):
    """The answer to ``can_use_tool`` that keeps the tool from running."""

    message: str | UnsetType
    """The reason, which goes to the model as the result. The CLI requires it; UNSET if a received answer lacks it."""
    interrupt: bool | None = None
    """True also stops the turn."""
    toolUseID: str | None = None
    """The ``id`` of the tool call."""
    # one of user_temporary, user_permanent, user_reject
    decisionClassification: str | None = None
    """What the user chose: yes once, yes for good, or no."""


#: The answer to can_use_tool.
PermissionResult: TypeAlias = PermissionResultAllow | PermissionResultDeny | OrUnknownObject


class PermissionRuleDescription(Wire, frozen=True):
    """A description of a rule in three parts, so that the middle one can be emphasised."""

    prefix: str
    """Fixed words before the emphasis."""
    emphasis: str | None = None
    """Text of the rule itself. It may hold invisible characters."""
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
    """The rule as stored, such as ``Bash(npm run *)``. It may hold control characters."""
    description: PermissionRuleDescription | None = None
    """The rule in plain words."""
    # one of session, persistent, readonly
    editability: str
    """Whether the rule is kept for the session, saved in a settings file, or read-only."""
    notInEffect: bool | None = None
    """True if managed settings switch the rule off."""


class PermissionWorkspaceDirectory(Wire, frozen=True):
    """One additional directory that the session may work in, and what granted it."""

    path: str
    source: str
    """A settings source such as ``localSettings``, ``cliArg`` for ``--add-dir``, or ``session``."""


class PermissionRulesState(Wire, kw_only=True, frozen=True):
    """All permission rules and additional directories of the session at this moment."""

    rules: list[PermissionRuleEntry]
    """The rules, each with its source."""
    workspaceDirectories: list[PermissionWorkspaceDirectory]
    """The additional directories."""
    originalCwd: str
    """The working directory at the start of the session."""
    managedOnly: bool
    """True if only the rules of managed settings count."""
    errors: list[SettingsParseError] | None = None
    """Why settings files were skipped, with all their rules."""
    withheld: bool | None = None
    """True if the answer leaves out rules and paths, because the connection stores it."""


class MatchedAskRule(Wire, frozen=True):
    """The user's own ``ask`` rule that forced a permission question.

    A host that approves automatically should treat such a question as meant for a person.
    """

    source: str
    """Where the rule comes from, such as ``userSettings``."""
    tool_name: str
    """The name of the tool in the rule."""
    rule_content: str | None = None
    """The part of the rule in parentheses; None if the rule is for the whole tool."""
