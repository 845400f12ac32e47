"""Sessions for code without async. An event loop in a separate thread runs the async sessions.

::

    from claude_wire import ClaudeOptions, sync

    print(sync.ask("What is 2 + 2?").result)

    with sync.open_session(ClaudeOptions(model="sonnet"), can_use_tool=decide) as session:
        session.query("Make the file a.txt")
        for message in session.receive_response():
            print(type(message).__name__)
"""

from __future__ import annotations

from claude_wire.sync.session import Messages, Session, ask, open_session

__all__ = ["Messages", "Session", "ask", "open_session"]
