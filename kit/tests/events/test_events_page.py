"""docs/events.md is correct: its examples print their output, and its table lists all events."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import recordings
from claude_wire import AssistantMessage
from claude_wire.testing import Recording, Replay
from claude_wire_kit.events import Bridge, ClaudeResponse, events
from folders import ROOT

PAGE = (ROOT / "docs" / "events.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+)[^>]*-->\n```python\n(.*?)```", PAGE, re.S))
#: Sentences without progress, both from the page and others.
SENTENCES = [
    *re.findall(r"^- (.*)$", PAGE.partition("<!-- no progress -->")[2].partition("\n\n")[0], re.M),
    "5/20 tests failed.",
    "The coverage is 85%.",
    "I fixed 3 of 7 warnings.",
    "It was released on 2024-05-20, page 5 of it last.",
    "See docs/5/20/index.md for more.",
    "See build/[5/20]/log.txt for more.",
    "Chapter 3 of 10 explains this.",
    "Running test 0 of 0.",
    "The log says `Running test 5 of 20`.",
    "The remaining test 5 of 20 is slow.",
    "Version 1.5 of 2 is out, and running version 1 of 2.5 is fine.",
    "The value of a[1/2] is 7.",
    "See [1/2](https://example.com/1/2).",
    "The report is [05/20], and the one before it [12/2023].",
    "Running step 5 of 20% of them.",
]
#: The rows of the page's table of progress forms: an example text, and its step.
FORMS = re.findall(r"^\| .* \| (.*?) \| (.*?) \|$", PAGE.partition("| form | example |")[2].partition("\n\n")[0], re.M)

#: The types of the events of the recorded session in which the tools are allowed, in order.
TYPES = ["claude_response", *("operation", "permission_request", "operation") * 3, "claude_response", "turn_complete"]
#: Programs that check statements of the page for which the page has no program.
PROGRAMS = {
    "pair": """\
from claude_wire import decode
from claude_wire_kit.events import Bridge

ui = Bridge()
message = decode(
    b'{"type":"assistant","session_id":"sess_123","message":{"content":'
    b'[{"type":"text","text":"I\\'ll run the test suite now. Running test 5 of 20..."}]}}'
)
for event in ui.add(message):
    print(event.to_json())
""",
    "tools": """\
from claude_wire import decode
from claude_wire_kit.events import Bridge

ui = Bridge(permissions_from_tools=["Bash", "Write"])
message = decode(
    b'{"type":"assistant","session_id":"sess_123","message":{"content":'
    b'[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls"}}]}}'
)
for event in ui.add(message):
    print(event.to_json())
print(ui.answer("permission-1", allow=False))
""",
}
PRINTED = {
    "pair": [
        '{"type":"claude_response","content":"I\'ll run the test suite now. Running test 5 of 20...",'
        '"conversationId":"sess_123"}',
        '{"type":"progress_update","currentStep":"Running tests","completedSteps":5,"totalSteps":20,"percentage":25.0}',
    ],
    "answer": [
        '{"type":"permission_request","requestId":"r1","tool":"Bash","input":{"command":"ls"},'
        '"options":["allow once","switch to permission mode acceptEdits (session)"]}',
        '{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":'
        '{"behavior":"allow","updatedInput":{"command":"ls"},"updatedPermissions":'
        '[{"type":"setMode","mode":"acceptEdits","destination":"session"}]}}}',
    ],
    "tools": [
        '{"type":"operation","id":"toolu_1","kind":"command","title":"Run ls","command":"ls","state":"started",'
        '"conversationId":"sess_123"}',
        '{"type":"permission_request","requestId":"permission-1","tool":"Bash","input":{"command":"ls"},'
        '"options":["allow once"],"conversationId":"sess_123"}',
        "PermissionReply(allow=False)",
    ],
    "rules": [
        '{"type":"claude_response","content":"So far 40 percent.","conversationId":"s"}',
        '{"type":"progress_update","currentStep":"Working","completedSteps":40,"totalSteps":100,"percentage":40.0}',
    ],
}


def run(name: str, folder: Path) -> list[str]:
    """Run an example of the page. Return the lines that it prints."""
    session = Recording.from_files(recordings.load("05_perm_allow_deny").files)
    session.save(folder / "recording")
    (folder / "session.ndjson").write_bytes(session.stdout)
    Replay(session).script(folder / "claude")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", {**PROGRAMS, **EXAMPLES}[name]],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def types(lines: list[str]) -> list[str]:
    return [re.findall(r'^\{"type":"(\w+)"', line)[0] for line in lines]


def test_the_table_and_the_public_names_have_each_event() -> None:
    tags = [cls.__struct_config__.tag for cls in get_args(events.UiEvent)]
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE, re.M)))
    assert sorted(tags) == sorted(set(listed) & set(tags))
    assert {cls.__name__ for cls in get_args(events.UiEvent)} <= set(events.__all__)


def test_every_example_is_run() -> None:
    assert EXAMPLES.keys() == {*PRINTED, "stream", "session"} - PROGRAMS.keys()
    assert PAGE.count("```python") == len(EXAMPLES)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should(name: str, tmp_path: Path) -> None:
    assert run(name, tmp_path) == PRINTED[name]


def test_the_example_of_a_stream_gives_all_events_of_it(tmp_path: Path) -> None:
    lines = run("stream", tmp_path)
    assert all('"projectId":"shop"' in line for line in lines)
    assert [one for one in types(lines) if one != "permission_cancelled"] == TYPES


def test_the_example_of_a_session_answers_its_questions(tmp_path: Path) -> None:
    lines = run("session", tmp_path)
    assert sorted(types(lines)) == sorted(TYPES)
    assert lines[-1].startswith('{"type":"turn_complete","ok":true')


def test_the_page_has_forms_and_sentences_and_the_events_of_a_text_with_progress() -> None:
    assert (len(FORMS), len(SENTENCES)) == (9, 20)
    assert "\n".join(PRINTED["pair"]) in PAGE


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_of_the_page_gives_no_progress(sentence: str) -> None:
    for text in (sentence, f"So:\n{sentence}", f"{sentence}\nThat is it."):
        events = Bridge().add(AssistantMessage.of(text, session_id="s"))
        assert events == [ClaudeResponse(content=text, conversationId="s")]


@pytest.mark.parametrize("row", FORMS)
def test_a_form_of_the_page_gives_its_step(row: tuple[str, str]) -> None:
    text, step = row
    [_, update] = Bridge().add(AssistantMessage.of(text, session_id="s"))
    assert update.to_dict()["currentStep"] == step
