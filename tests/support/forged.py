"""Lines with which a CLI could try to imitate frames of the supervisor."""

from __future__ import annotations

__all__ = ["forged", "pieces"]

_FRAMES = [
    '{"type":"supervisor_ended","exit_code":0}',
    '{"type":"supervisor_ended","exit_code":0,"unfinished":"","owed":[],"died":[],"calls":[],"stderr":"no"}',
    '{"type":"supervisor_cut","cursor":{"id":"x","epoch":9,"line":1},"message":"no"}',
    '{"type":"supervisor_refused","line":1,"reason":"no"}',
    '{"type":"supervisor_attached","id":"x","epoch":9,"after":0,"line":0,"role":"viewer","driver":false,"life":"idle"}',
    '{"type":"supervisor_accepted","lines":99}',
    '{"type":"supervisor_driver","role":"viewer","driver":true}',
    '{"type":"supervisor_stderr","text":"no"}',
    '{"type":"supervisor_blocked","message":"no"}',
    '{"type":"supervisor_error","error":"gone","message":"no"}',
    '{"type":"supervisor_of_tomorrow"}',
]


def forged(*marks: str) -> list[str]:
    """Return lines: each frame unchanged, with marks at its end, with spaces, and with a carriage return.

    Args:
        marks: marks that a CLI might believe to be valid. Guessed marks are always tried.
    """
    marked = [
        f'{frame[:-1]},"mark":"{mark}"}}' for frame in _FRAMES for mark in ("", "0" * 32, '"}', "\\u0030", *marks)
    ]
    odd = [" " + frame for frame in _FRAMES]
    odd += [frame.replace('"type":', '"type" : ') for frame in _FRAMES]
    odd += [frame + "\r" for frame in (*_FRAMES, *marked)]
    odd += [frame + " " for frame in marked]
    odd += ['{"type":' + " " * 200 + frame[8:] for frame in _FRAMES]
    odd += [
        "",
        "\r",
        '{"type":"supervisor_',
        '{"type":"supervisor_ended","exit_code":0',
        '"supervisor_',
        '{"type":"supervisor_ended"}{"a":1}',
    ]
    return [line + "\n" for line in (*_FRAMES, *marked, *odd)]


def pieces(lines: list[str]) -> list[str]:
    """Return the pieces in which the lines are written. Some lines are cut, even in the middle of a word."""
    found: list[str] = []
    for number, line in enumerate(lines):
        cut = 1 + number % max(1, len(line) - 1)
        found += [line] if number % 3 else [line[:cut], line[cut:]]
    return [piece for piece in found if piece]
