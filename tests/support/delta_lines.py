"""Delta lines that a decoder may merge, delta lines that it may not, and lines across which it must not merge."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["BASE", "CLOSING", "EARNING", "MERGEABLE", "NOT_MERGEABLE", "TEXT_KEYS", "block", "delta"]

TEXT_KEYS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}

#: A delta as the CLI writes it. The tests build other lines by replacing a part of this line.
BASE = (
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}},'
    b'"session_id":"s","parent_tool_use_id":null,"uuid":"u1","api_message_id":"m"}'
)


def delta(text: str = "a", **changes: Any) -> bytes:
    """Return a delta line.

    ``text`` is inserted between the quotes without escaping. ``changes`` may set session, parent, index, kind and uuid.
    """
    kind = changes.get("kind", "text_delta")
    line = BASE.replace(b'"text_delta","text":"a"', f'"{kind}","{TEXT_KEYS[kind]}":"{text}"'.encode())
    line = line.replace(b'"index":0', b'"index":%d' % changes.get("index", 0))
    line = line.replace(b'"s"', json.dumps(changes.get("session", "s")).encode())
    line = line.replace(b"null", json.dumps(changes.get("parent")).encode())
    return line.replace(b'"u1"', json.dumps(changes.get("uuid", "u1"), ensure_ascii=False).encode())


def block(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


#: Enough deltas to make a decoder merge. It goes on merging until it has returned more than thirty messages.
EARNING = [delta("", session="before")] * 150


def _with(old: bytes, new: bytes) -> bytes:
    assert BASE.count(old) == 1, old
    return BASE.replace(old, new)


MERGEABLE = {
    "as the CLI writes it": BASE,
    "white space": json.dumps(json.loads(BASE), indent=1).encode().replace(b"\n", b"\t\r "),
    "white space around": b" \t" + BASE + b" \r",
    "keys in another order": json.dumps(json.loads(BASE), sort_keys=True).encode(),
    "keys backwards": json.dumps(dict(reversed(json.loads(BASE).items()))).encode(),
    "an escaped key": _with(b'"text":', rb'"t\u0065xt":'),
    "escaped keys": _with(b'"event"', rb'"\u0065vent"').replace(b'"uuid"', rb'"\u0075\u0075id"'),
    "an escaped tag": _with(b'"text_delta"', rb'"text\u005fdelta"'),
    "no uuid": _with(b'"uuid":"u1",', b""),
    "no session": _with(b'"session_id":"s",', b""),
    "no parent": _with(b'"parent_tool_use_id":null,', b""),
    "a session that is null": _with(b'"session_id":"s"', b'"session_id":null'),
    "an empty session": _with(b'"session_id":"s"', b'"session_id":""'),
    "no text": _with(b'"text":"a"', b'"text":""'),
    "a great index": _with(b'"index":0', b'"index":18446744073709551616'),
    "more keys": _with(b'"api_message_id":"m"', rb'"a":[{"b":[-1.5,true,null,"\ud83d"]},{}],"\ud83d":-0,"c":"1e5"'),
    "more keys in the event": _with(b'"index":0', b'"index":0,"x":{"type":"y","index":5},"text":"b"'),
    "more keys in the delta": _with(b'"text":"a"', b'"text":"a","thinking":"b","partial_json":5,"x":{}'),
    "a content block as well": _with(b'"index":0', b'"index":0,"content_block":{"type":"text","text":"no"}'),
    "a request as well": _with(b'"api_message_id":"m"', b'"request":{"subtype":"x"}'),
    "keys twice where nobody looks": _with(b'"api_message_id":"m"', b'"x":{"y":1,"y":2}'),
    "values as deep as may be": _with(b'"m"', b"[" * 63 + b"]" * 63),
    "a long number": _with(b'"m"', b"1" * 64),
    "UTF-8": _with(b'"m"', '"é日😀"'.encode()),
}
NOT_MERGEABLE = {
    # --- not a delta of text
    "a signature": _with(b'"text_delta","text"', b'"signature_delta","signature"'),
    "a delta of tomorrow": _with(b'"text_delta"', b'"text_delta2"'),
    "another event": _with(b'"content_block_delta"', b'"content_block_stop"'),
    "another type": _with(b'"stream_event"', b'"user"'),
    # --- the text is not a plain string
    "no text key": _with(b'"text":"a"', b'"thinking":"a"'),
    "a text that is null": _with(b'"text":"a"', b'"text":null'),
    "a text that is a number": _with(b'"text":"a"', b'"text":1'),
    "a text that is an object": _with(b'"text":"a"', b'"text":{"text":"a"}'),
    "the text in the event": _with(b',"text":"a"}', b'},"text":"a"'),
    "the text twice": _with(b'"text":"a"', b'"text":"a","text":"a"'),
    "the text twice in two spellings": _with(b'"text":"a"', rb'"text":"a","te\u0078t":"a"'),
    "an unknown escape": _with(b'"text":"a"', rb'"text":"\x"'),
    "a short escape": _with(b'"text":"a"', rb'"text":"\u12"'),
    "an escape of three digits at the end": _with(b'"text":"a"', rb'"text":"\u123"'),
    "an escape of three digits": _with(b'"text":"a"', rb'"text":"\u123x"'),
    "an escape whose first digit is none": _with(b'"text":"a"', rb'"text":"\ug123"'),
    "an escape of three digits elsewhere": _with(b'"m"', rb'"\u123x"'),
    "a control byte": _with(b'"text":"a"', b'"text":"\x01"'),
    "a tab": _with(b'"text":"a"', b'"text":"\t"'),
    "not UTF-8": _with(b'"text":"a"', b'"text":"\xff"'),
    "a character cut in UTF-8": _with(b'"text":"a"', b'"text":"\xe2\x82"'),
    "a surrogate in UTF-8": _with(b'"text":"a"', b'"text":"\xed\xa0\xbd"'),
    # --- the index, the uuid or another field of the key is not plain
    "no index": _with(b'"index":0,', b""),
    "an index below zero": _with(b'"index":0', b'"index":-1'),
    "minus zero": _with(b'"index":0', b'"index":-0'),
    "an index that is a fraction": _with(b'"index":0', b'"index":0.0'),
    "an index with an exponent": _with(b'"index":0', b'"index":0e0'),
    "an index with a zero in front": _with(b'"index":0', b'"index":00'),
    "an index that is a string": _with(b'"index":0', b'"index":"0"'),
    "an index that is null": _with(b'"index":0', b'"index":null'),
    "an index outside the event": _with(b'"index":0,', b"").replace(b'"uuid"', b'"index":0,"uuid"'),
    "a session with an escape": _with(b'"session_id":"s"', rb'"session_id":"\u0073"'),
    "a session that is a number": _with(b'"session_id":"s"', b'"session_id":1'),
    "a session that is an object": _with(b'"session_id":"s"', b'"session_id":{}'),
    "a parent with an escape": _with(b'"parent_tool_use_id":null', rb'"parent_tool_use_id":"\n"'),
    "a parent that is false": _with(b'"parent_tool_use_id":null', b'"parent_tool_use_id":false'),
    "a uuid with an escape": _with(b'"uuid":"u1"', rb'"uuid":"\u0031"'),
    "a uuid that is null": _with(b'"uuid":"u1"', b'"uuid":null'),
    "a uuid that is a number": _with(b'"uuid":"u1"', b'"uuid":1'),
    # --- a value that decoders may refuse
    "values too deep": _with(b'"m"', b"[" * 64 + b"]" * 64),
    "objects too deep": _with(b'"m"', b'{"a":' * 64 + b"1" + b"}" * 64),
    "values much too deep": _with(b'"m"', b"[" * 10_000 + b"]" * 10_000),
    "a number too long": _with(b'"m"', b"-1." + b"1" * 62),
    "an index too long": _with(b'"index":0', b'"index":' + b"1" * 65),
    "a number with an exponent": _with(b'"m"', b"1e5"),
    "a number out of range": _with(b'"m"', b"[1E999]"),
    # --- repeated keys
    "a key twice": _with(b'"api_message_id":"m"', b'"x":1,"x":1'),
    "a key twice in two spellings": _with(b'"api_message_id":"m"', rb'"x":1,"\u0078":1'),
    "half a pair twice as a key": _with(b'"api_message_id":"m"', rb'"\ud83d":1,"\uD83D":1'),
    "a character twice as a key": _with(b'"api_message_id":"m"', '"😀":1,"\\ud83d\\ude00":1'.encode()),
    "a key twice in the event": _with(b'"index":0', b'"index":0,"index":0'),
    "a key twice in the delta": _with(b'"text":"a"', b'"text":"a","x":1,"x":2'),
    "the type twice": _with(b'"type":"stream_event"', b'"type":"stream_event","type":"stream_event"'),
    "the uuid twice": _with(b'"uuid":"u1"', b'"uuid":"u1","uuid":"u1"'),
    "the session twice": _with(b'"session_id":"s"', b'"session_id":"s","session_id":"s"'),
    # --- not JSON, or perhaps not JSON
    "a word that is none": _with(b'"m"', b"tru"),
    "NaN": _with(b'"m"', b"NaN"),
    "a number with a zero in front": _with(b'"m"', b"01"),
    "a number that ends with its point": _with(b'"m"', b"1."),
    "a number that begins with its point": _with(b'"m"', b".5"),
    "a number with a plus": _with(b'"m"', b"+1"),
    "a number without its exponent": _with(b'"m"', b"1e"),
    "brackets that do not match": _with(b'"m"', b"[}"),
    "a comma too many": _with(b'"m"', b"[1,]"),
    "no comma": _with(b'"m"', b"[1 2]"),
    "a key that is no string": _with(b'"m"', b"{1:2}"),
    "no value": _with(b'"m"', b'{"x"}'),
    "a bad escape elsewhere": _with(b'"m"', rb'"\x"'),
    "a bad escape in a key elsewhere": _with(b'"m"', rb'{"\x":1}'),
    "a control byte elsewhere": _with(b'"m"', b'"\x1f"'),
    "not UTF-8 elsewhere": _with(b'"m"', b'"\xc3"'),
    "a form feed": BASE + b"\x0c",
    "a byte order mark": b"\xef\xbb\xbf" + BASE,
    "unfinished": BASE[:-1],
    "something behind it": BASE + b"1",
    "two on a line": BASE + BASE,
}

CLOSING = {
    "a message": b'{"type":"system","subtype":"init"}',
    "an event": b'{"type":"stream_event","event":{"type":"content_block_stop","index":5},"session_id":"z"}',
    "a signature": NOT_MERGEABLE["a signature"],
    "a keep-alive": b'{"type":"keep_alive"}',
    "an unclear line": b'{"type":"user","type":"system"}',
    "an invalid line": b"bad",
    "not UTF-8": b"\xff",
    "a form feed": b"\x0c",
    "a delta that may not be merged": NOT_MERGEABLE["a uuid that is null"].replace(b'"s"', b'"other"'),
}
