"""A bridge finds progress in texts and in the agent's to-do lists, in linear time."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from claude_wire import AssistantMessage, ToolResultBlock, ToolUseBlock, UserMessage
from claude_wire.messages import ApiMessage, MessageParam, ResultSuccess, TaskProgressMessage, TaskUsage
from claude_wire_kit.events import PROGRESS_RULES, Bridge, ProgressUpdate, Step, SubagentProgress, find_step
from claude_wire_kit.events.progress import MAX_READ
from folders import DATA
from long_tests import LONG

FENCED = "```\nRunning test 5 of 20\n```"


@pytest.mark.parametrize(
    ("text", "name", "completed", "total"),
    [
        ("Running test 5 of 20", "Running tests", 5, 20),
        ("I'll go on. Running test 5 of 20...", "Running tests", 5, 20),
        ("**Running test 5 of 20**", "Running tests", 5, 20),
        ("Stop if it fails. Running test 5 of 20", "Running tests", 5, 20),
        ("I am now processing entry 0 of 7.", "Processing entries", 0, 7),
        ("Uploading big log batch 7 of 7, then done", "Uploading big log batches", 7, 7),
        ("Compiling class 2 of 3 in a hurry", "Compiling classes", 2, 3),
        ("Running test 5 of 20 across modules", "Running tests", 5, 20),
        ("keep trying running test 1 of 2", "Running tests", 1, 2),
        ("Running test 1 of 20\nRunning test 2 of 20\n", "Running tests", 2, 20),
        ("Running test 5 of 20, [6/20] Linking", "Linking", 6, 20),
        ("[6/20] Linking; running test 5 of 20", "Linking; running test 5 of 20", 6, 20),
        ("Step 3 of 10: Install dependencies", "Install dependencies", 3, 10),
        ("step 3 of 10", "Step 3", 3, 10),
        ("Now on step 3 of 10", "Step 3", 3, 10),
        ("Step 3 of 10 \u2014 Install", "Install", 3, 10),
        ("[ 5/20] Building CXX object", "Building CXX object", 5, 20),
        ("Building [5/20]", "Building", 5, 20),
        ("[5/20]", "Step 5", 5, 20),
        ("[5/2200] Linking", "Linking", 5, 2200),
        ("[13/2024] Linking", "Linking", 13, 2024),
        (f"{FENCED}\nRunning test 6 of 20", "Running tests", 6, 20),
        (f"Running test 6 of 20\n{FENCED}", "Running tests", 6, 20),
        ("```Running test 5 of 20``` Running test 6 of 20", "Running tests", 6, 20),
        ("Running test 1 of 20. Running test 25 of 20", "Running tests", 1, 20),
        ("[1/2] \x1b[31m\u202ered", "\\x1b[31m\\u202ered", 1, 2),
    ],
)
def test_a_step_is_found_in_text(text: str, name: str, completed: int, total: int) -> None:
    found = find_step(text, PROGRESS_RULES)
    assert found is not None
    if "\nRun" not in text and text.startswith("[6/20] Linking;"):
        assert (found.completed, found.total) == (5, 20)  # the last one wins
    else:
        assert found[1:] == (name, completed, total)


@pytest.mark.parametrize(
    "text",
    [
        FENCED,
        "~~~\n[5/20] Building\n~~~",
        "```\nRunning test 5 of 20",
        "````\n```\nRunning test 5 of 20\n````",
        "  ```sh\n[5/20] Building\n  ```\nDone",
        "`[5/20] Building`",
        "Running 5 of 20",
        "Running test 12345678901 of 20",
        "Running test 5 of 12345678901",
        "I won't be running test 5 of 20",
        "I didn't finish; stopped running test 5 of 20",
        "Running test -5 of 20",
        "Running test 1.5 of 20",
        "Running test \u00b2 of 20",
        "Running test \u0665 of 20",
        "5 of 20",
        " of 20",
        "Running test 5 of 2024-05-20",
        "Running test 5 of 20/21",
        "[5/2024] was May",
        "[05/20] Building",
        "x[1/2]",
        "[[1/2]](x)",
        "no step 3 of 10",
        "We renamed step 3 of 10",
    ],
)
def test_no_step_is_found(text: str) -> None:
    assert find_step(text, PROGRESS_RULES) is None


def said(text: str, *, session: str = "s", parent: str | None = None) -> AssistantMessage:
    message = AssistantMessage.of(text, session_id=session)
    return AssistantMessage(message=message.message, session_id=session, parent_tool_use_id=parent)


def called(name: str, input: Any, id: str = "t1", *, parent: str | None = None) -> AssistantMessage:
    content: list[Any] = [ToolUseBlock(id, name, input)]
    return AssistantMessage(message=ApiMessage(content=content), session_id="s", parent_tool_use_id=parent)


def returned(content: Any, id: str = "t1", **more: Any) -> UserMessage:
    return UserMessage(message=MessageParam("user", [ToolResultBlock(id, content)]), session_id="s", **more)


def progress(ui: Bridge, *messages: Any) -> list[tuple[str, int, int, str | None]]:
    events = [event for message in messages for event in ui.add(message)]
    return [
        (event.currentStep, event.completedSteps, event.totalSteps, event.conversationId)
        for event in events
        if isinstance(event, ProgressUpdate)
    ]


def test_the_same_progress_is_told_once_in_a_turn_and_session() -> None:
    one, two = said("Running test 1 of 2"), said("Running test 2 of 2")
    told = progress(Bridge(), one, one, two, one, said("Running test 1 of 2", session="x"))
    assert [completed for _, completed, _, _ in told] == [1, 2, 1, 1]
    assert len(progress(Bridge(), one, ResultSuccess(session_id="s"), one)) == 2


def test_equal_numbers_with_another_name_are_new_progress() -> None:
    told = progress(Bridge(), said("Building module 1 of 2"), said("Testing module 1 of 2"))
    assert told == [("Building modules", 1, 2, None), ("Testing modules", 1, 2, None)]


def test_the_output_of_a_command_counts_and_that_of_other_tools_does_not() -> None:
    ui = Bridge()
    assert progress(ui, called("Bash", {"command": "make"}), returned("[5/20] Compiling\n")) == [
        ("Compiling", 5, 20, "s")
    ]
    assert progress(ui, called("Read", {"file_path": "log"}, "t2"), returned("[6/20] Compiling\n", "t2")) == []
    assert progress(ui, called("Bash", {}, "t3", parent="a"), returned("[7/20] Compiling\n", "t3")) == []


def test_what_a_subagent_says_is_no_progress_of_the_conversation() -> None:
    assert progress(Bridge(), said("Running test 5 of 20", parent="a")) == []


TODOS = [
    {"content": "Read", "status": "completed", "activeForm": "Reading"},
    {"content": "Write", "status": "in_progress", "activeForm": "Writing"},
    {"content": "Test", "status": "pending", "activeForm": "Testing"},
]


def test_the_list_of_todos_comes_before_text_until_the_turn_ends() -> None:
    ui = Bridge()
    text = said("Running test 5 of 20")
    assert progress(ui, called("TodoWrite", {"todos": TODOS}), text) == [("Writing", 1, 3, "s")]
    assert progress(ui, called("TodoWrite", {"todos": TODOS[:1]}, "t2")) == [("Done", 1, 1, "s")]
    assert progress(ui, ResultSuccess(session_id="s"), text) == [("Running tests", 5, 20, None)]


@pytest.mark.parametrize("input", [None, 5, [], {}, {"todos": None}, {"todos": "x"}, {"todos": {}}, {"todos": []}])
def test_todos_of_other_types_are_no_progress(input: Any) -> None:
    assert progress(Bridge(), called("TodoWrite", input)) == []


def test_todos_with_fields_of_other_types_count_as_waiting() -> None:
    items: list[Any] = [None, 5, {"status": 1, "content": []}, {"status": "completed"}]
    assert progress(Bridge(), called("TodoWrite", {"todos": items})) == [("Working", 1, 4, "s")]


def test_tasks_that_are_created_and_updated_are_progress() -> None:
    ui = Bridge()
    created = [
        called("TaskCreate", {"subject": "Read"}, "c1"),
        returned("Task #1 created successfully: Read", "c1"),
        called("TaskCreate", {"subject": "Write", "activeForm": "Writing"}, "c2"),
        returned("ok", "c2", tool_use_result={"task": {"id": "2", "subject": "Write"}}),
    ]
    assert progress(ui, *created) == [("Read", 0, 1, "s"), ("Read", 0, 2, "s")]
    assert progress(ui, called("TaskUpdate", {"taskId": "1", "status": "completed"}, "u1")) == [("Writing", 1, 2, "s")]
    assert progress(ui, called("TaskUpdate", {"taskId": "9", "status": "completed"}, "u2")) == []
    assert progress(ui, called("TaskUpdate", {"taskId": "2", "status": "deleted"}, "u3")) == [("Done", 1, 1, "s")]


@pytest.mark.parametrize("result", [None, 5, {"task": 5}, {"task": {"id": 5}}])
def test_a_created_task_without_an_id_is_not_counted(result: Any) -> None:
    created = called("TaskCreate", {"subject": "Read"})
    assert progress(Bridge(), created, returned("no", tool_use_result=result)) == []


def test_the_step_of_a_task_is_read() -> None:
    usage = TaskUsage(total_tokens=1, tool_uses=1, duration_ms=1)
    task = TaskProgressMessage(task_id="b", description="Running test 5 of 20", usage=usage, session_id="s")
    assert progress(Bridge(), task, said("Running test 1 of 2")) == [("Running tests", 5, 20, "s")]


def test_rules_can_be_replaced_and_what_does_not_fit_is_passed_over() -> None:
    def rule(text: str) -> list[Step]:
        return [Step(0, "a", 1, 2), Step(2, "b", 3, 2), Step(3, "c", -1, 2), Step(4, "d", 0, 0), Step(1, "e", 2, 2)]

    assert progress(Bridge(progress=[rule]), said("x")) == [("e", 2, 2, None)]
    # If two rules find a step at the same place, the later rule wins.
    assert find_step("x", [lambda _: [Step(0, "a", 1, 2)], lambda _: [Step(0, "b", 1, 2)]]) == Step(0, "b", 1, 2)
    assert progress(Bridge(progress=[]), said("Running test 5 of 20")) == []


def test_of_a_long_text_the_end_is_read() -> None:
    text = "Running test 1 of 2 " + "x" * (MAX_READ - 20)
    assert find_step(text, PROGRESS_RULES) is not None
    assert find_step(text + "x" * 20, PROGRESS_RULES) is None
    assert find_step(text + "x" * 20 + " Running test 2 of 2", PROGRESS_RULES) is not None


#: Texts that take quadratic time if an expression backtracks, or if a search restarts.
HOSTILE = [
    "1",
    "[",
    "`",
    "~",
    " ",
    "\n",
    "ing ",
    "1 of 1 ",
    " 1 of 1",
    "Running test 1 of 1 ",
    "Running test 2 of 1 ",
    "step ",
    "[1/1]",
    "[1/1",
    "[ 1 / 1 ",
    "```\n",
    "```\n`\n",
    "~~~`",
    "````````x",
    "`x\n",
    " of ",
    "1 of ",
    "subagent ",
    "Started subagent `a`",
    "sub-",
    "agent ",
    "2 sub-agents ",
    "Subagent 1: ",
    "code-reviewer agent ",
    "a-b-",
    "1% done ",
    "test 1/1 ",
    "1/1",
    "if ",
    "Launching ",
]
#: The length of each text. Its square is more steps than a processor makes in SECONDS.
CHARACTERS = 2_000_000 if LONG else 80_000
#: The limit of processor time for one text. It hardly depends on the load. A correct search takes a hundredth of it.
SECONDS = 100 if LONG else 4
IN_LINEAR_TIME = """\
import resource, sys, time
from claude_wire import AssistantMessage
from claude_wire_kit.events import Bridge, bridge, progress
progress.MAX_READ = bridge.MAX_READ = 1_000_000_000
characters, seconds = map(int, sys.argv[2:])
_, most = resource.getrlimit(resource.RLIMIT_CPU)
for piece in eval(sys.argv[1]):
    size = characters // len(piece)
    for text in (piece * size, piece * size + " 1 of 1", "Running test 1 of 2 `x` " + piece * size):
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, most))
        assert Bridge().add(AssistantMessage.of(text)) is not None
print("done")
"""


def test_hostile_text_takes_time_in_proportion_to_its_length() -> None:
    command = [sys.executable, "-c", IN_LINEAR_TIME, repr(HOSTILE), str(CHARACTERS), str(SECONDS)]
    assert subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout == "done\n"


# --- Measure the precision and recall of the progress rules on sentences that people and models write -----------------


SENTENCES = DATA / "sentences"
#: Wrong progress misleads the user. Missed progress matters less, because the next step corrects it.
MIN_PRECISION = 0.97
MIN_RECALL = {"developed": 0.97, "held-out": 0.9}


def sentences(name: str) -> list[tuple[str, set[str]]]:
    """Return each sentence with the expected findings: ``5/20`` for progress, ``NAME=STATUS`` for a subagent."""
    found = []
    for line in (SENTENCES / f"{name}.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        progress, subagents, text = line.split("\t")
        found.append((text, {*filter(None, [progress, *subagents.split(",")])}))
    return found


def found_in(text: str) -> set[str]:
    found = set()
    subagents = {}  # name -> last status
    for event in Bridge().add(AssistantMessage.of(text, session_id="s")):
        if isinstance(event, ProgressUpdate):
            found.add(f"{event.completedSteps}/{event.totalSteps}")
        elif isinstance(event, SubagentProgress):
            subagents[event.name] = event.status
    return found | {f"{name}={status}" for name, status in subagents.items()}


@pytest.mark.parametrize("name", ["developed", "held-out"])
def test_what_is_found_in_sentences_is_right_and_little_is_missed(name: str) -> None:
    corpus = sentences(name)
    right = wrong = missed = 0
    problems = []
    for text, wanted in corpus:
        found = found_in(text)
        right, wrong, missed = right + len(found & wanted), wrong + len(found - wanted), missed + len(wanted - found)
        if found != wanted:
            problems.append(f"{text}: {found} instead of {wanted}")
    assert right / (right + wrong) >= MIN_PRECISION, problems
    assert right / (right + missed) >= MIN_RECALL[name], problems


@pytest.mark.parametrize("name", ["developed", "held-out"])
def test_both_halves_have_sentences_of_all_kinds(name: str) -> None:
    corpus = sentences(name)
    assert sum(any("/" in one for one in wanted) for _, wanted in corpus) >= 35
    assert sum(any("=" in one for one in wanted) for _, wanted in corpus) >= 19
    assert sum(not wanted for _, wanted in corpus) >= 60


def test_no_sentence_is_in_both_halves() -> None:
    assert not {text for text, _ in sentences("developed")} & {text for text, _ in sentences("held-out")}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Subagent Smith is running", "Smith"),
        ("Subagent smith is running", None),
        ("Subagent code-review is running", "code-review"),
        ("Agent code-review is running", "code-review"),
        ("agent code-review is running", None),
        ("Agent Smith is running", None),
        ("Agent 3 is running", "subagent 3"),
        ("agent 3 is running", None),
        ("Agent 'smith' is running", "smith"),
        ("agent 'smith' is running", None),
    ],
)
def test_what_is_a_name_behind_the_word_agent(text: str, name: str | None) -> None:
    assert found_in(text) == (set() if name is None else {f"{name}=running"})


def test_a_text_starts_at_most_sixteen_subagents() -> None:
    assert found_in("Launching 16 subagents") == {f"subagent {number}=started" for number in range(1, 17)}
    assert found_in("Launching 99 subagents") == found_in("Launching 16 subagents")
