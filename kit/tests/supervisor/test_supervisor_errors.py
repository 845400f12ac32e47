"""The exceptions that a supervisor's client raises."""

from __future__ import annotations

import pickle

import pytest

from claude_wire import ClaudeWireError
from claude_wire_kit.supervisor import Cursor, DetachedError, SupervisorError


@pytest.mark.parametrize(
    "error",
    [DetachedError("text", Cursor("s", 1, 2), [b"{}"]), SupervisorError("epoch", "lines were lost", line=3)],
)
def test_the_errors_keep_what_they_say_through_pickle(error: ClaudeWireError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
