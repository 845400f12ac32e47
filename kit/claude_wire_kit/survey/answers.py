"""Find unknown fields in the answers to control requests.

An answer does not name its request's subtype, which decides the answer's class. So this module remembers the requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from claude_wire.errors import PayloadError
from claude_wire.messages import ControlRequest, ControlRequestBody, ControlRequestPayload, ControlResponse, Unknown
from claude_wire.support import one_line
from claude_wire_kit.survey.fields import INDEX, Finding, Found, found_in_value

#: The classes of control requests, by subtype.
REQUESTS: dict[str, type[ControlRequestBody[Any]]] = {
    str(cls.__struct_config__.tag): cls for cls in get_args(ControlRequestPayload)
}
#: Maximum number of remembered requests (the newest), and maximum length of their ids. No host uses longer ids.
MAX_ASKED, MAX_ID = 1000, 200


class Requests:
    """Remembers the subtypes of the newest requests by their ids."""

    def __init__(self) -> None:
        self._subtypes: dict[Any, str] = {}

    def note(self, request: ControlRequest) -> None:
        """Remember a request, whichever side sent it."""
        if isinstance(request.request, Unknown) or len(str(request.request_id)) > MAX_ID:
            return
        self._subtypes.pop(request.request_id, None)
        self._subtypes[request.request_id] = str(type(request.request).__struct_config__.tag)
        if len(self._subtypes) > MAX_ASKED:
            del self._subtypes[next(iter(self._subtypes))]

    def find_unknown(self, response: ControlResponse) -> Iterator[Found]:
        """Yield what is unknown in an answer. Yield nothing if the request is not remembered or was refused."""
        subtype = self._subtypes.get(response.request_id)
        if subtype is not None and response.ok:
            yield from find_unknown(subtype, response.payload, response.payload)


def find_unknown(subtype: str, payload: dict[str, Any], plain: dict[str, Any]) -> Iterator[Found]:
    """Yield what is unknown in ``payload``, the answer to a request of this subtype.

    ``payload`` may contain subclasses of the built-in types. ``plain`` is the same JSON without them.
    """
    if not plain:  # the answer only acknowledges the request, so it has none of the fields of its class
        return
    path = f"answer.{one_line(subtype)}"
    try:
        answer = REQUESTS[subtype].parse_answer(plain) if subtype in REQUESTS else plain
    except PayloadError as error:
        yield Found(Finding("answer", subtype, path, INDEX.sub("[]", str(error))), payload, None, payload)
    else:
        yield from found_in_value(payload, answer, path)
