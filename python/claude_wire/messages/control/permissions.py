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
    """One permission rule: a tool, and optionally which of its uses.

    ``ruleContent`` is the part in parentheses of a written rule, such as ``npm run *`` in ``Bash(npm run *)``;
    leave it out for the whole tool. A null ``ruleContent`` makes the CLI refuse the whole answer.
    """

    toolName: str
    ruleContent: str | None = None


class _RulesChange(Wire, tag_field="type", frozen=True):
    rules: list[PermissionRuleValue]
    # one of allow, deny, ask
    behavior: str
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str


class AddRules(_RulesChange, tag="addRules", frozen=True):
    """Adds permission rules of one behavior (allow, deny or ask); see :data:`PermissionUpdate`."""


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


class _DirectoriesChange(Wire, tag_field="type", frozen=True):
    directories: list[str]
    # one of session, localSettings, userSettings, projectSettings, cliArg
    destination: str


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
    """The answer to ``can_use_tool`` that lets the tool run.

    ``updatedPermissions`` means "don't ask again": return one of the request's ``permission_suggestions``, or your own.
    """

    updatedInput: dict[str, Any] | None = None
    """The input that the tool runs with, changed or not. Send it always, because older CLIs require it."""
    updatedPermissions: list[PermissionUpdate] | None = None
    """Permissions to grant along with this call."""
    toolUseID: str | None = None
    """The id of the tool call."""
    # one of user_temporary, user_permanent, user_reject
    decisionClassification: str | None = None


class PermissionResultDeny(Wire, tag_field="behavior", tag="deny", frozen=True, metaclass=ByHand):
    """The answer to ``can_use_tool`` that keeps the tool from running.

    The CLI requires ``message``. A received answer may lack it (``UNSET``).
    """

    message: str | UnsetType
    """The reason, which goes to the model as the result of the tool."""
    interrupt: bool | None = None
    """True also stops the turn."""
    toolUseID: str | None = None
    """The id of the tool call."""
    # one of user_temporary, user_permanent, user_reject
    decisionClassification: str | None = None


#: The answer to can_use_tool.
PermissionResult: TypeAlias = PermissionResultAllow | PermissionResultDeny | OrUnknownObject


class PermissionRuleDescription(Wire, frozen=True):
    """A description of a rule in three parts, so that the middle one can be emphasised.

    ``prefix`` and ``suffix`` are fixed words, ``emphasis`` is text of the rule itself and may hold invisible
    characters.
    """

    prefix: str
    emphasis: str | None = None
    suffix: str | None = None


class PermissionRuleEntry(Wire, kw_only=True, frozen=True):
    """A permission rule of the session, and its source.

    ``rule`` is the stored text, which may have control characters. ``notInEffect`` is true when managed
    settings switch the rule off; ``editability`` says whether it is saved, kept for the session, or read-only.
    """

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
    """One additional directory that the session may work in, and what granted it.

    ``source`` is a settings source, ``cliArg`` for ``--add-dir``, or ``session``.
    """

    path: str
    source: str


class PermissionRulesState(Wire, kw_only=True, frozen=True):
    """All permission rules and additional directories of the session at this moment.

    ``managedOnly`` means that only the rules of managed settings count. Files listed in ``errors`` were skipped, with
    all their rules. ``withheld`` is true when the answer was cut because the connection stores it.
    """

    rules: list[PermissionRuleEntry]
    workspaceDirectories: list[PermissionWorkspaceDirectory]
    originalCwd: str
    managedOnly: bool
    errors: list[SettingsParseError] | None = None
    withheld: bool | None = None


class MatchedAskRule(Wire, frozen=True):
    """The user's own ``ask`` rule that forced a permission question.

    A host that approves automatically should treat such a question as meant for a person.
    """

    source: str
    tool_name: str
    rule_content: str | None = None
