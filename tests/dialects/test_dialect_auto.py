"""Dialects as objects, and AUTO, which detects the dialect of the other side."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from claude_wire import UserMessage, encode
from claude_wire.dialects import AUTO, CLASSIC, JSON_RPC, MIRIAD, STREAM_JSON, STREAM_JSON_2_1_7, Dialect, dialect_of
from claude_wire.messages import InterruptedMessage, ResultCancelled
from dialect_lines import INIT, RESULT, read

ALL = [STREAM_JSON, STREAM_JSON_2_1_7, CLASSIC, MIRIAD, JSON_RPC, AUTO]


@pytest.mark.parametrize("dialect", ALL)
def test_a_dialect_is_a_value(dialect: Dialect) -> None:
    assert pickle.loads(pickle.dumps(dialect)) is dialect
    assert copy.deepcopy(dialect) is dialect
    assert repr(dialect) == f"<Dialect {dialect.name}>"
    assert dialect_of(dialect) is dialect
    assert dialect.connect() is not dialect.connect()
    with pytest.raises(AttributeError):
        dialect.name = "other"
    assert dialect.plain == (dialect in (STREAM_JSON, STREAM_JSON_2_1_7))


def test_only_auto_has_a_name_for_users() -> None:
    assert dialect_of("auto") is AUTO
    with pytest.raises(ValueError, match="not 'miriad'"):
        dialect_of("miriad")
    with pytest.raises(TypeError, match="not int"):
        dialect_of(5)


@pytest.mark.parametrize(
    ("line", "dialect"),
    [
        ('{"type":"system","subtype":"tool_result","tool_result":{"type":"tool_result","tool_use_id":"t"}}', MIRIAD),
        ('{"type":"system","subtype":"tool_result","tool_use_id":"t","content":"x"}', AUTO),
        ('{"type":"system","subtype":"status","status":"compacting"}', STREAM_JSON),
        ('{"type":"system","subtype":"status","running":true}', MIRIAD),
        ('{"type":"system","subtype":"error","error":{"message":"m","code":"c"}}', CLASSIC),
        ('{"type":"result","subtype":"success"}', AUTO),
    ],
)
def test_a_host_finds_out_what_its_agent_speaks(line: str, dialect: Dialect) -> None:
    host = AUTO.connect()
    host.from_agent(read(line))
    assert host.dialect is dialect


def test_prompts_and_results_count_before_the_dialect_is_found_out() -> None:
    host = AUTO.connect()
    for prompt in "abc":
        host.to_agent(UserMessage.of(prompt))
    assert host.from_agent(RESULT) == [RESULT]
    interrupted = InterruptedMessage(session_id="S")
    assert host.from_agent(interrupted) == [interrupted]
    assert host.dialect is MIRIAD
    # The host waits for two results: the interrupted turn gets a ResultCancelled, and this result ends the second turn.
    assert host.from_agent(RESULT) == [ResultCancelled(is_error=False, session_id="S"), RESULT]


def test_a_result_that_no_prompt_asked_for_does_not_count_for_the_next_prompt() -> None:
    host = AUTO.connect()
    assert host.from_agent(RESULT) == [RESULT]
    host.to_agent(UserMessage.of("a"))
    host.from_agent(InterruptedMessage(session_id="S"))
    assert host.dialect is MIRIAD
    assert host.missing_result() == [ResultCancelled(is_error=False, session_id="S")]


def test_an_agent_answers_in_what_it_has_found_out() -> None:
    agent = AUTO.connect()
    assert agent.to_host(INIT) == encode(INIT)
    assert agent.to_host(RESULT) == encode(RESULT)
    assert agent.from_host(read('{"type":"control","action":"interrupt"}')) == []
    assert json.loads(agent.reply())["message"] == "No turn is currently running"
    assert agent.to_host(RESULT) == MIRIAD.connect().to_host(RESULT)


@pytest.mark.parametrize(
    ("line", "dialect"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"status"}', JSON_RPC),
        ('{"type":"control","action":"status"}', MIRIAD),
        ('{"type":"control"}', MIRIAD),
        ('{"allow":true}', CLASSIC),
        ('{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}', STREAM_JSON),
        ('{"type":"control_request","request_id":[]}', STREAM_JSON),
        ('{"type":"user","uuid":"u","message":{"role":"user","content":"a"}}', STREAM_JSON),
        ('{"type":"user","message":{"role":"user","content":"a"},"session_id":"s"}', AUTO),
        ('{"type":"keep_alive"}', AUTO),
    ],
)
def test_an_agent_finds_out_what_its_host_speaks(line: str, dialect: Dialect) -> None:
    agent = AUTO.connect()
    given = agent.from_host(read(line))
    assert agent.dialect is dialect
    if dialect in (STREAM_JSON, AUTO):
        assert given == [read(line)]
    # The first line that only one dialect has decides the dialect for the rest of the connection.
    agent.from_host(read('{"type":"control","action":"interrupt"}'))
    assert agent.dialect is (MIRIAD if dialect is AUTO else dialect)
