"""Read the JSON input of a tool call, while it still streams and when it is complete.

jiter reads a text that is not complete yet. A complete text is read strictly, so that nothing in it is guessed.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

#: An escape of half a surrogate pair whose other half neither follows nor may still come. jiter refuses such an escape.
#: Whole pairs match too, as group 1, so that no half is found within them. The text must have no escaped backslashes.
#: The common beginning of all branches comes first, so that the regex engine searches for it.
_LONE = re.compile(
    r"\\u[dD](?:"
    r"([89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|[c-fC-F][0-9a-fA-F]{2}"
    r"|[89abAB][0-9a-fA-F]{2}(?!\\?\Z|\\u\Z|\\u[dD]\Z|\\u[dD][c-fC-F][0-9a-fA-F]?\Z)"
    r")"
)
#: A number cannot end like this. jiter would leave out such a number.
_DANGLING = re.compile(r"(?<=[0-9])(?:\.|[eE][+-]?)\Z")
_decode = msgspec.json.decode


class NotJson(ValueError):
    """The text is not JSON. The message says why, without quoting the text."""


def _refuse(name: str) -> Any:
    raise NotJson(f"{name} is no number")


# Whole numbers of any size are read. Numbers out of range become infinities, as in JavaScript.
_strict = json.JSONDecoder(parse_constant=_refuse)


def read_whole(text: str) -> Any:
    """Return the value of a JSON text. Of duplicate keys the last one counts. Lone surrogates are kept.

    Raises:
        NotJson: the text is not JSON, or is nested too deeply.
    """
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        pass  # msgspec also refuses lone surrogates and numbers out of range
    try:
        return _strict.decode(text.strip(" \t\r\n"))
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg.removesuffix(' at')} at character {error.pos}") from None
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except NotJson:
        raise
    except ValueError:  # sys.get_int_max_str_digits
        raise NotJson("a number is too long") from None


def read_part(text: str) -> Any:
    """Return the value of an incomplete JSON text as far as it can be read, or ``{}``.

    The value is the beginning of the final one. Objects have their first keys and arrays their first items, and only
    the last of these may be incomplete. An incomplete string has its characters so far, without an incomplete escape;
    a number has its digits so far (``1`` of ``1.`` and of ``1e-``). A word such as ``true`` must be complete, and a
    key must have a value. As the text grows, nothing disappears, unless a key comes twice, or the text turns out not
    to be JSON, or to be nested some 200 levels deep. Such deep nesting is read only when the text is complete.

    Only one thing differs from the final value: a lone surrogate reads as U+FFFD. Takes time in proportion to the text:
    microseconds for a string of 100,000 characters in one run: 6, and 68 if it is code with escapes; 389 and 416 if it
    has a lone surrogate too, and 1,946 if it has one and is all escaped pairs.
    """
    if text.endswith(("}", "]")):
        try:
            return read_whole(text)
        except NotJson:
            pass
    # Imported here, because only a host that reads incomplete tool input needs it.
    from jiter import from_json

    dangling = _DANGLING.search(text[-3:])
    if dangling and not _ends_in_string(text):
        text = text[: -len(dangling[0])]
    # A surrogate in the text becomes its escape.
    data = text.encode("utf-8", "backslashreplace")
    for attempt in (0, 1):
        try:
            # "keys": the values of two inputs are rarely the same, so they should not stay in the cache.
            return from_json(data, allow_inf_nan=False, cache_mode="keys", partial_mode="trailing-strings")
        except ValueError:
            # JSON has no NUL, so a NUL can take the place of an escaped backslash. Then each remaining backslash begins
            # an escape.
            if attempt or b"\\u" not in data or b"\0" in data:
                break
            escapes = data.decode().replace("\\\\", "\0")
            whole = _LONE.sub(lambda match: match[0] if match[1] else "\\ufffd", escapes)
            data = whole.replace("\0", "\\\\").encode()
    return {}


def _ends_in_string(text: str) -> bool:
    return text.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 1
