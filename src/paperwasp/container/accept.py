"""The Accept header, and the form in which a visit is streamed to who sends it.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html#accept
Differs: without an Accept header, and where anything is accepted, the answer is JSON Lines of documents alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request

_LARGEST: Final = 4096
_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_RANGE: Final = compile_later(rf"({_TOKEN})/({_TOKEN})((?:[ \t]*;[ \t]*{_TOKEN}=(?:{_TOKEN}|{_QUOTED}))*)[ \t]*")
_PARAMETER: Final = compile_later(rf";[ \t]*({_TOKEN})=({_TOKEN}|{_QUOTED})")
_QUALITY: Final = compile_later(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")
_SEPARATORS: Final = " \t,"


class StreamForm(Enum):
    """How the documents of a streamed visit are written."""

    OBJECT = "one JSON object"
    LINES = "a line of JSON for each document"
    CONTROLLED_LINES = "the same, and lines that say how far the visit is"

    @property
    def content_type(self) -> str:
        return f"application/{'json' if self is StreamForm.OBJECT else 'jsonl'}; charset=UTF-8"


def media_ranges(header: str) -> Mapping[str, float]:
    """Media range in lower case → quality; of equal ones the best. Errors: InvalidInput."""
    if len(header) > _LARGEST:
        raise InvalidInput(f"The Accept header has more than {_LARGEST} characters")
    found: dict[str, float] = {}
    place = _skip(header, 0)
    while place < len(header):
        match = _RANGE.match(header, place)
        if match is None or (match.end() < len(header) and header[match.end()] != ","):
            raise InvalidInput(f"Accept header could not be parsed at position {place}: '{header}'")
        name = f"{match[1]}/{match[2]}".lower()
        found[name] = max(found.get(name, 0.0), _quality(match[3], header))
        place = _skip(header, match.end())
    return found


def _skip(header: str, place: int) -> int:
    while place < len(header) and header[place] in _SEPARATORS:
        place += 1
    return place


def _quality(parameters: str, header: str) -> float:
    quality = "1"
    for name, value in _PARAMETER.findall(parameters):
        if name.lower() == "q":
            quality = value
    if _QUALITY.fullmatch(quality) is None:
        raise InvalidInput(f"Accept header has a bad quality '{quality}': '{header}'")
    return float(quality)


def stream_form(request: Request) -> StreamForm:
    """The form that the client wants, or can read. Errors: InvalidInput for an Accept header that is none."""
    accepted = media_ranges(request.header("accept"))
    lines, whole = accepted.get("application/jsonl", 0.0), accepted.get("application/json", 0.0)
    if lines > 0 and lines >= max(accepted.values()):
        return StreamForm.CONTROLLED_LINES
    if whole > 0 or (accepted and not accepted.keys() & {"*/*", "application/*"}):
        return StreamForm.OBJECT
    # pyvespa accepts anything, and reads one object.
    return StreamForm.OBJECT if request.header("user-agent").startswith("pyvespa/") else StreamForm.LINES
