"""The demo agent's tools. They really read, change and run files in the session's folder."""

from __future__ import annotations

import base64
import difflib
import os
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from claude_wire.agent import Turn
from claude_wire.messages import AddRules, PermissionRuleValue, PermissionUpdate, SetMode


class Result(NamedTuple):
    """A tool's result: ``content`` for the model, and ``structured`` for programs."""

    content: str | list[dict[str, Any]]
    structured: Any = None
    is_error: bool = False


#: Tools that do not need permission, because they change nothing.
_UNASKED = {"Read", "Grep", "TodoWrite", "Task"}


async def use(turn: Turn, name: str, **given: Any) -> Result | None:
    """Call a tool, ask for permission if necessary, and send the result. Returns None if the host denies the call.

    ``turn.run_tool()`` does this for a function with one result. The CLI's tools have two results: text for the model,
    and JSON for programs, such as the diff of an edit.
    """
    call = await turn.use_tool(name, given)
    edits_freely = name == "Edit" and turn.session.permission_mode == "acceptEdits"
    if name not in _UNASKED and not edits_freely:
        decision = await turn.allowed(call, _suggestions(name, given))
        if not decision.ok:
            await turn.tool_result(call, decision.message, is_error=True)
            return None
        given = decision.input
    result = await _TOOLS[name](Path(turn.session.cwd), given)
    await turn.tool_result(call, result.content, result.is_error, structured=result.structured)
    return result


def _suggestions(name: str, given: dict[str, Any]) -> list[PermissionUpdate]:
    if name == "Edit":
        return [SetMode(mode="acceptEdits", destination="session")]
    if name == "Bash":
        return [AddRules(rules=[PermissionRuleValue("Bash")], behavior="allow", destination="session")]
    return []


async def _read(folder: Path, given: dict[str, Any]) -> Result:
    path = folder / given["file_path"]
    if path.suffix == ".png":
        data = base64.b64encode(path.read_bytes()).decode()
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return Result([{"type": "image", "source": source}], {"type": "image", "file": {"base64": data}})
    text = path.read_text(encoding="utf-8")
    numbered = "".join(f"{number:>6}\t{line}\n" for number, line in enumerate(text.splitlines(), 1))
    return Result(numbered, {"type": "text", "file": {"filePath": os.fspath(path), "content": text}})


async def _grep(folder: Path, given: dict[str, Any]) -> Result:
    found = [
        f"{path.relative_to(folder).as_posix()}:{number}:{line}"
        for path in sorted(folder.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if given["pattern"] in line
    ]
    return Result("\n".join(found) or "No matches found")


async def _edit(folder: Path, given: dict[str, Any]) -> Result:
    path = folder / given["file_path"]
    before = path.read_text(encoding="utf-8")
    after = before.replace(given["old_string"], given["new_string"], 1)
    if after == before:
        return Result("String to replace not found in file.", is_error=True)
    path.write_text(after, encoding="utf-8")
    structured: dict[str, Any] = {
        "filePath": os.fspath(path),
        "oldString": given["old_string"],
        "newString": given["new_string"],
        "structuredPatch": _patch(before.splitlines(), after.splitlines()),
    }
    return Result(f"The file {given['file_path']} has been updated.", structured)


def _patch(before: list[str], after: list[str]) -> list[dict[str, Any]]:
    """Return the diff between two texts as hunks, in the form of ``structuredPatch`` in the CLI's edit results."""
    hunks: list[dict[str, Any]] = []
    for group in difflib.SequenceMatcher(None, before, after).get_grouped_opcodes():
        lines: list[str] = []
        for tag, old, old_end, new, new_end in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[old:old_end]]
            else:
                lines += [f"-{line}" for line in before[old:old_end]] + [f"+{line}" for line in after[new:new_end]]
        (_, old, _, new, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        counts = {"oldStart": old + 1, "oldLines": old_end - old, "newStart": new + 1, "newLines": new_end - new}
        hunks.append({**counts, "lines": lines})
    return hunks


async def _bash(folder: Path, given: dict[str, Any]) -> Result:
    """Run a command. ``python`` means the interpreter that runs this agent."""
    program, *arguments = shlex.split(given["command"])
    command = [sys.executable if program == "python" else program, *arguments]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    done = await anyio.run_process(command, cwd=folder, env=env, check=False)
    stdout, stderr = done.stdout.decode(), done.stderr.decode()
    output = (stdout + stderr).strip()
    structured = {"stdout": stdout, "stderr": stderr, "interrupted": False, "isImage": False}
    if done.returncode:
        return Result(f"Exit code {done.returncode}\n{output}", f"Error: {output}", is_error=True)
    return Result(output or "(Bash completed with no output)", structured)


async def _todo(folder: Path, given: dict[str, Any]) -> Result:
    return Result("Todos have been modified successfully.")


async def _ask(folder: Path, given: dict[str, Any]) -> Result:
    """Return a person's answers. The host puts them into the tool's input when it allows the call."""
    answers: dict[str, str] = given.get("answers") or {}
    said = ", ".join(f'"{question}"="{answer}"' for question, answer in answers.items())
    return Result(f"User has answered your questions: {said or '(no answer)'}", {"answers": answers})


async def _leave_plan(folder: Path, given: dict[str, Any]) -> Result:
    return Result("User has approved your plan. You can now start coding.")


_TOOLS: dict[str, Callable[[Path, dict[str, Any]], Awaitable[Result]]] = {
    "AskUserQuestion": _ask,
    "Bash": _bash,
    "Edit": _edit,
    "ExitPlanMode": _leave_plan,
    "Grep": _grep,
    "Read": _read,
    "TodoWrite": _todo,
}
TOOLS = [*_TOOLS, "Task"]
