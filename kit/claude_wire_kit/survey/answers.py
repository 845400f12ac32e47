"""Find the unknown fields in answers to control requests. The request decides which class an answer has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from claude_wire.errors import PayloadError
from claude_wire.messages import ControlRequest, ControlRequestBody, ControlRequestPayload, ControlResponse, Unknown
from claude_wire.support import one_line
from claude_wire_kit.survey.fields import INDEX, Finding, Found, found_in_value

#: Subtype -> class of the control request.
REQUESTS: dict[str, type[ControlRequestBody[Any]]] = {
    str(cls.__struct_config__.tag): cls for cls in get_args(ControlRequestPayload)
}
#: Limits: the number of remembered requests (the newest ones), and the length of a request id. No host has longer ids.
MAX_ASKED, MAX_ID = 1000, 200


class Requests:
    """The subtypes of the newest requests, by request id, so that answers can be matched to them."""

    def __init__(self) -> None:
        self._subtypes: dict[Any, str] = {}

    def note(self, request: ControlRequest) -> None:
        """Remember a request of either side."""
        if isinstance(request.request, Unknown) or len(str(request.request_id)) > MAX_ID:
            return
        self._subtypes.pop(request.request_id, None)
        self._subtypes[request.request_id] = str(type(request.request).__struct_config__.tag)
        if len(self._subtypes) > MAX_ASKED:
            del self._subtypes[next(iter(self._subtypes))]

    def find_unknown(self, response: ControlResponse) -> Iterator[Found]:
        """Yield the unknown parts of an answer; nothing if the request is unknown or was refused."""
        subtype = self._subtypes.get(response.request_id)
        if subtype is not None and response.ok:
            yield from find_unknown(subtype, response.payload, response.payload)


def find_unknown(subtype: str, payload: dict[str, Any], plain: dict[str, Any]) -> Iterator[Found]:
    """Yield the unknown parts of the payload of an answer to a request of this subtype.

    ``plain`` is the same payload in plain JSON types. The payload of a sample may use subclasses of these types.
    """
    if not plain:  # an empty acknowledgement lacks all fields of its class
        return
    path = f"answer.{one_line(subtype)}"
    try:
        answer = REQUESTS[subtype].parse_answer(plain) if subtype in REQUESTS else plain
    except PayloadError as error:
        yield Found(Finding("answer", subtype, path, INDEX.sub("[]", str(error))), payload, None, payload)
    else:
        yield from found_in_value(payload, answer, path)
