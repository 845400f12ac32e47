"""The rules that decide when a run is over, without a session: prompt states, background tasks, and waits."""

from __future__ import annotations

from typing import Any

import pytest

from claude_wire import decode
from claude_wire.protocol.run import MARKS, MAX_PROMPTS, SETTLE_SECONDS, TRANSITIONS, Event, Run, SentPrompt, State
from run_messages import BACKGROUND, IDLE, RUNNING, ended, lifecycle, listed, result, started, state
from session_peer import INIT, RESULT, line


def seen(run: Run, *messages: dict[str, Any]) -> None:
    for message in messages:
        typed = decode(line(message))
        if type(typed) in MARKS:
            run.see(typed)


def asked(run: Run, uuid: str | None = None, now: float = 0.0) -> SentPrompt:
    prompt = run.ask(uuid, now)
    assert prompt is not None
    return prompt


def test_every_state_has_its_row_and_every_row_leads_to_an_end() -> None:
    assert set(TRANSITIONS) == set(State)
    for start in State:
        reached, todo = {start}, [start]
        while todo:
            for after in TRANSITIONS[todo.pop()].values():
                if after not in reached:
                    reached.add(after)
                    todo.append(after)
        assert any(not TRANSITIONS[one] for one in reached)
    used = {event for events in TRANSITIONS.values() for event in events}
    assert used == set(Event)


#: Description -> the uuids of the prompts, the CLI's messages, and the states of the prompts after them.
FATES: dict[str, tuple[list[str | None], list[dict[str, Any]], list[State]]] = {
    "a result names its prompt": (["a"], [INIT, result("a")], [State.ANSWERED]),
    "a result names another prompt": (["a", None], [INIT, result("a")], [State.ANSWERED, State.UNCERTAIN]),
    "a result names nobody that waits": (["a"], [INIT, result("z")], [State.SENT]),
    "a result says that it names nobody": (
        ["a", None],
        [INIT, result("a"), INIT, {**RESULT, "user_message_uuids": []}],
        [State.ANSWERED, State.ANSWERED],
    ),
    "one that names nobody leaves those with a uuid": (["a"], [{**RESULT, "user_message_uuids": []}], [State.SENT]),
    "a named one was behind one without a uuid": ([None, "b"], [INIT, result("b")], [State.ANSWERED] * 2),
    "a CLI that names the last one only": (
        ["a", "b", "c"],
        [INIT, {**RESULT, "user_message_uuid": "b"}],
        [State.ANSWERED, State.ANSWERED, State.SENT],
    ),
    "merged prompts without a uuid": ([None, None], [INIT, result()], [State.ANSWERED, State.UNCERTAIN]),
    "one result for each": ([None, None], [INIT, result(), INIT, result()], [State.ANSWERED] * 2),
    "an agent that names nobody": (["a", "b"], [result(), result()], [State.ANSWERED] * 2),
    "background work answers nobody": (["a"], [INIT, result(**BACKGROUND)], [State.UNCERTAIN]),
    "background work that took a prompt in": (["a"], [INIT, result("a", **BACKGROUND)], [State.ANSWERED]),
    "the CLI tells of a queue": (["a"], [lifecycle("a", "queued")], [State.QUEUED]),
    "of a turn": (["a"], [lifecycle("a", "queued"), lifecycle("a", "started")], [State.STARTED]),
    "of nothing known": (["a"], [lifecycle("a", "dreaming")], [State.SENT]),
    "of another prompt": (["a"], [lifecycle("b", "completed")], [State.SENT]),
    "one that was answered before": (["a"], [lifecycle("a", "completed")], [State.REPEATED]),
    "one that was cancelled": (["a"], [lifecycle("a", "queued"), lifecycle("a", "cancelled")], [State.CANCELLED]),
    "one that was refused": (["a"], [lifecycle("a", "refused")], [State.CANCELLED]),
    "one that was discarded": (["a"], [lifecycle("a", "queued"), lifecycle("a", "discarded")], [State.CANCELLED]),
    "one that was put into a turn": (
        ["a", "b"],
        [INIT, *(lifecycle("b", name) for name in ("queued", "started", "completed"))],
        [State.SENT, State.FOLDED],
    ),
    "the result of that turn": (
        ["a", "b"],
        [INIT, *(lifecycle("b", name) for name in ("queued", "started", "completed")), result("a", "b")],
        [State.ANSWERED, State.ANSWERED],
    ),
    "the result of that turn, at its limit": (
        ["a", "b"],
        [INIT, *(lifecycle("b", name) for name in ("queued", "started", "completed")), result("a")],
        [State.ANSWERED, State.ANSWERED],
    ),
    "one that was put back": (
        ["a"],
        [INIT, *(lifecycle("a", name) for name in ("queued", "started", "queued"))],
        [State.QUEUED],
    ),
    "one whose turn was cancelled": (
        ["a"],
        [INIT, *(lifecycle("a", name) for name in ("queued", "started", "cancelled"))],
        [State.FOLDED],
    ),
    "one that was put back after it entered a turn": (
        ["a", "b"],
        [INIT, *(lifecycle("b", name) for name in ("queued", "started", "completed", "queued"))],
        [State.SENT, State.QUEUED],
    ),
    "a queued one is no merged one": (["a", "b"], [lifecycle("b", "queued"), result()], [State.ANSWERED, State.QUEUED]),
    "injected ones": (
        ["a", "b", "c"],
        [{"type": "system", "subtype": "injected", "message_count": 1, "content_length": 9}, result()],
        [State.ANSWERED, State.ANSWERED, State.UNCERTAIN],
    ),
}


@pytest.mark.parametrize("fate", FATES)
def test_what_becomes_of_prompts(fate: str) -> None:
    uuids, said, states = FATES[fate]
    run = Run()
    prompts = [asked(run, uuid) for uuid in uuids]
    seen(run, *said)
    assert [prompt.state for prompt in prompts] == states


def test_the_error_of_a_subagents_message_is_not_that_of_the_turn() -> None:
    def assistant(parent: str | None, error: str | None) -> dict[str, Any]:
        return {"type": "assistant", "message": {"content": []}, "parent_tool_use_id": parent, "error": error}

    run = Run()
    seen(run, INIT, assistant(None, "rate_limit"), assistant("toolu_1", "authentication_failed"))
    assert run.reason == "rate_limit"
    seen(run, assistant(None, None), assistant("toolu_1", "authentication_failed"))
    assert run.reason is None


def test_of_a_state_and_of_a_reason_little_is_kept() -> None:
    """The peer chooses both strings, and a line may have 128 MiB."""
    run = Run()
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    assistant = {"type": "assistant", "message": message, "parent_tool_use_id": None, "error": "e" * 100_000}
    seen(run, state("s" * 100_000), assistant)
    assert run.reason == "e" * 128
    assert run._state == "s" * 128


@pytest.mark.parametrize("count", [-5, -1, 0, 2**63, 2**80])
def test_a_count_of_injected_prompts_may_be_any_number(count: int) -> None:
    run = Run()
    prompts = [asked(run), asked(run)]
    seen(run, {"type": "system", "subtype": "injected", "message_count": count, "content_length": 1})
    assert [prompt.state for prompt in prompts] == [State.SENT, State.FOLDED if count > 0 else State.SENT]


def test_how_long_is_waited() -> None:
    run = Run()
    assert run.patience(600, 0) == 600
    prompt = asked(run, "a", 10.0)
    assert run.patience(600, 10) is None
    seen(run, IDLE)
    assert run.patience(600, 10) == 600  # the CLI is idle although a result is missing
    seen(run, RUNNING, INIT)
    assert run.patience(600, 10) is None
    seen(run, result("a"), IDLE)
    assert prompt.ended
    # Two prompts without a uuid; the CLI may have merged the second into the first.
    asked(run, None, 20.0)
    asked(run, None, 21.0)
    seen(run, RUNNING, INIT, result(), IDLE)
    assert run.patience(600, 21.5) == 21.0 + SETTLE_SECONDS - 21.5
    assert 0 < (run.patience(600, 99) or 0) < SETTLE_SECONDS
    assert run.patience(0.05, 21.5) == 0.05
    assert not run.over
    run.settle()
    assert run.over


def test_a_cli_that_says_no_state_is_given_time_if_it_tells_of_turns() -> None:
    run = Run()
    asked(run), asked(run)
    seen(run, result())
    assert run.patience(600, 0) == 600
    seen(run, INIT)
    assert run.patience(600, 0) is None
    seen(run, result())
    asked(run), asked(run)
    seen(run, result())
    assert run.patience(600, 0) == SETTLE_SECONDS


def test_a_prompt_keeps_a_result_only_while_that_may_be_its_own() -> None:
    run = Run()
    prompts = [asked(run, uuid) for uuid in ("a", "b", "c")]
    seen(run, result(), lifecycle("b", "queued"))
    assert [prompt.result is not None for prompt in prompts] == [True, False, True]


def test_an_emptied_queue_leaves_prompts_without_a_uuid_uncertain() -> None:
    """This applies to prompts that were sent before the request to empty the queue and have no result yet."""
    run = Run()
    answered, swept = asked(run), asked(run)
    before = run.unnamed()
    seen(run, RUNNING, INIT, result(user_message_uuids=[]))
    assert answered.state is State.ANSWERED
    later, named = asked(run, now=9.0), asked(run, "a", now=9.0)
    run.drop(["a"], before)
    assert [prompt.state for prompt in (answered, swept, later, named)] == [
        State.ANSWERED,
        State.UNCERTAIN,
        State.SENT,
        State.CANCELLED,
    ]
    assert not run.over


def test_an_empty_uuid_is_none() -> None:
    """The CLI starts a turn for each prompt with an empty uuid, but names it in no result."""
    run = Run()
    prompts = [run.ask("", 0.0), run.ask("", 0.0)]
    assert not run.had("")
    for prompt in prompts:
        assert prompt is not None
        assert not run.over
        seen(run, {**RESULT, "user_message_uuids": []})
        assert prompt.state is State.ANSWERED
    assert run.over


# --- background tasks -------------------------------------------------------------------------------------------------


def test_of_background_work_little_is_kept() -> None:
    run = Run()
    for number in range(5_000):
        seen(run, started(f"a{number}"), started(f"s{number}", "local_bash"))
    assert (len(run.background.subagents), len(run.background.shells)) == (4096, 4096)


#: Description -> start and end of a background command, and whether a turn about it will certainly follow.
ENDS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "it is done": (started("s", "local_bash"), ended("s"), True),
    "it has failed": (started("s", "local_bash"), ended("s", "failed"), True),
    "it was stopped": (started("s", "local_bash"), ended("s", "stopped"), False),
    "a subagent gets to know of it": (started("s", "local_bash", parent_task_id="t"), ended("s"), False),
    "the CLI has not said how": (started("s", "local_bash"), listed(), False),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_turn_about_the_end_of_a_command_is_waited_for_if_it_is_certain(how: str) -> None:
    began, end, is_certain = ENDS[how]
    run = Run()
    seen(run, INIT, began, result(), end)
    assert run.unfinished() == ("before the turn that the end of a background task brings" if is_certain else "")
    assert run.patience(600, 0) == (600 if is_certain else SETTLE_SECONDS)
    assert not run.over
    run.settle()
    assert run.over is not is_certain


def test_a_resumed_task_belongs_to_the_agent_that_resumed_it() -> None:
    run = Run()
    seen(run, INIT, started("t", parent_task_id="p"), ended("t"), started("t"), result(), ended("t"))
    assert run.background.is_certain


def test_an_ambient_task_is_not_waited_for() -> None:
    run = Run()
    seen(run, INIT, started("t", ambient=True), result())
    assert run.over
    task = {"task_id": "t", "task_type": "local_agent", "description": "d", "ambient": True}
    seen(run, {**listed(), "tasks": [task]})
    assert run.over


def test_an_idle_cli_is_given_little_time_for_the_turn_about_a_task() -> None:
    run = Run()
    seen(run, RUNNING, INIT, started("s", "local_bash"), result(), IDLE, ended("s"))
    assert run.background.is_certain
    assert not run.over
    assert run.patience(600, 0) == SETTLE_SECONDS
    run.settle()
    assert run.over


def test_a_task_works_while_the_cli_lists_it() -> None:
    run = Run()
    seen(run, INIT, started("t"), result(), listed(t="local_agent", u="local_workflow"))
    assert run.background.subagents.strings() == ["t", "u"]
    assert run.unfinished() == "while a subagent worked in the background"
    seen(run, listed(u="local_workflow"))
    assert run.background.subagents.strings() == ["u"]


# --- taking over ------------------------------------------------------------------------------------------------------


def test_whoever_takes_over_waits_for_subagents_that_began_before() -> None:
    run = Run()
    run.take_over([], 0)
    run.arrive(turn=False, subagents=["t"], restarted=False)
    assert not run.over
    assert run.patience(600, 0) is None
    seen(run, ended("t"), INIT, result(**BACKGROUND))
    assert run.over


def test_whoever_takes_over_reads_old_messages_before_its_prompts_count() -> None:
    run = Run()
    run.take_over(["a"], 0)
    again = asked(run, "b")  # sent by the previous host, and now again
    seen(run, INIT, result(), {"type": "system", "subtype": "injected", "message_count": 1, "content_length": 1})
    assert (run.owed, again.state) == (["a", "b"], State.SENT)
    seen(run, result("b"))
    assert again.state is State.ANSWERED
    assert not run.over
    assert run.patience(600, 0) is None
    run.arrive(turn=True, restarted=False)
    assert run.turn
    seen(run, result())
    assert run.over


def test_the_work_of_an_earlier_process_has_ended() -> None:
    run = Run()
    run.take_over([], 0)
    seen(run, RUNNING, INIT, started("t"), result(queued_turn_count=1))
    run.arrive(turn=False, restarted=True)
    assert run.over


# --- prompts that do not reach the CLI --------------------------------------------------------------------------------


def test_a_refused_prompt_has_ended_and_may_be_sent_again() -> None:
    run = Run(reports=True)
    run.refuse("a", "nobody has sent it")
    prompt = asked(run, "a")
    run.refuse("a", "the queue is full")
    assert (prompt.state, prompt.refusal) == (State.CANCELLED, "the queue is full")
    assert run.take_finished() == [prompt]
    assert not run.had("a")
    assert asked(run, "a") is not prompt


@pytest.mark.parametrize("uuid", ["a", None])
def test_a_prompt_that_is_taken_back_was_never_sent(uuid: str | None) -> None:
    run = Run(reports=True)
    prompt = asked(run, uuid)
    run.take_back(prompt)
    assert run.over
    assert not run.had(uuid)
    assert run.unnamed() == run.take_finished() == []
    asked(run, uuid)
    assert not run.over


def test_above_the_limit_the_oldest_prompt_is_dropped() -> None:
    run = Run()
    for number in range(MAX_PROMPTS):
        asked(run, f"p{number}")
    assert run.owed[0] == "p0"
    asked(run, "one more")
    assert (len(run.owed), run.owed[0], run.owed[-1]) == (MAX_PROMPTS, "p1", "one more")


# --- other facts about a run
# -------------------------------------------------------------------------------------------


def test_subagents_that_were_stopped_between_turns_are_counted_until_the_next_turn() -> None:
    run = Run()
    seen(run, RUNNING, INIT, started("t"), started("u"), started("s", "local_bash"), result())
    seen(run, ended("t", "stopped"), ended("u", "killed"), ended("s", "stopped"))
    last = run.last_result
    assert last is not None
    error = run.stopped_error(last)
    assert error is not None
    assert error.count == 2
    seen(run, INIT, result(**BACKGROUND))
    assert run.stopped_error(last) is None


def test_a_subagent_that_is_stopped_in_a_turn_belongs_to_it() -> None:
    run = Run()
    seen(run, INIT, started("t"), ended("t", "stopped"), result())
    assert run.last_result is not None
    assert run.stopped_error(run.last_result) is None


def test_the_end_of_a_rate_limit_is_known_while_it_is_used_up() -> None:
    def limit(status: str) -> dict[str, Any]:
        return {"type": "rate_limit_event", "rate_limit_info": {"status": status, "resetsAt": 5}}

    run = Run()
    seen(run, limit("rejected"))
    assert run.resets_at == 5
    seen(run, limit("allowed"))
    assert run.resets_at is None


def test_what_may_end_without_a_turn_is_unfinished_until_then() -> None:
    run = Run()
    assert run.unfinished() == ""
    asked(run, "a")
    assert run.unfinished() == run.unfinished_turn() == "before the turn that was asked for"
    seen(run, INIT)
    assert run.unfinished() == "in the middle of a turn"
    seen(run, result("a"))
    assert run.unfinished() == ""


def test_an_agent_that_answers_each_prompt_begins_no_turn_by_its_greeting() -> None:
    run = Run(merges=False)
    prompts = [asked(run), asked(run)]
    seen(run, INIT)
    assert not run.turn
    seen(run, result())
    assert [prompt.state for prompt in prompts] == [State.ANSWERED, State.SENT]
    assert not run.over
