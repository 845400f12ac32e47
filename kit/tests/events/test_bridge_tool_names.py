"""The bridge recognizes a tool by each name that the five documents use for it."""

from __future__ import annotations

import pytest

from claude_wire_kit.events.tools import described


@pytest.mark.parametrize(
    ("name", "input", "expected"),
    [
        ("read", {"filePath": "/tmp/test.txt"}, ("file_read", "Read /tmp/test.txt", "/tmp/test.txt", None)),
        ("write", {"filePath": "/a", "content": ""}, ("file_write", "Write /a", "/a", None)),
        ("bash", {"command": "ls"}, ("command", "Run ls", None, "ls")),
        ("Read", {"file_path": "/a"}, ("file_read", "Read /a", "/a", None)),
        (
            "Write",
            {"file_path": "/path/to/file.py"},
            ("file_write", "Write /path/to/file.py", "/path/to/file.py", None),
        ),
        ("task", {}, ("other", "task", None, None)),
    ],
)
def test_a_tool_is_known_by_the_names_of_all_documents(name: str, input: object, expected: object) -> None:
    assert described(name, input) == expected
