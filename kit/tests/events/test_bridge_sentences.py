"""Measure the precision and recall of the progress rules on sentences that people and models write.

The rules were developed with ``developed.tsv``. ``held-out.tsv`` was written later, and no rule was changed because of
it. Each file has a hundred negative examples. Most of them nearly look like progress or subagents.
"""

from __future__ import annotations

import pytest

from claude_wire import AssistantMessage
from claude_wire_kit.events import Bridge, ProgressUpdate, SubagentProgress
from folders import DATA

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
