"""Reads a request to /document/v1/: the document that its path names and the options of its query string.

Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.container.timeouts import timeout_ms
from paperwasp.document.converters import check_text
from paperwasp.document.ids import DocumentId
from paperwasp.document.tensor.json_output import FORMS
from paperwasp.document.types import DocumentType
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import decode, decode_form
from paperwasp.indexing.components import TimeLeft, no_end
from paperwasp.text.parsing.tokens import did_you_mean

ROOT: Final = "/document/v1/"
_MAX_NUMBER: Final = 2**64 - 1
_OPTIONS_CACHED: Final = 256
_STARTS_CACHED: Final = 64
DOCID: Final = "/docid/"
_COLONS: Final = 4
"""Between the parts of an id."""
_PATHS: Final = """Available paths are:
/document/v1/
/document/v1/{namespace}/{documentType}/docid/
/document/v1/{namespace}/{documentType}/group/{group}/
/document/v1/{namespace}/{documentType}/number/{number}/
/document/v1/{namespace}/{documentType}/docid/{*}
/document/v1/{namespace}/{documentType}/group/{group}/{*}
/document/v1/{namespace}/{documentType}/number/{number}/{*}"""


def read_path(raw_path: str) -> DocumentId | None:
    """The document that the path names; None for a path to many documents.

    Slashes in the last part need not be encoded. Errors: NotFound for a path that is none of ours; InvalidInput.
    """
    start, _, rest = raw_path.partition(DOCID)
    if rest and "%" not in raw_path and "+" not in raw_path and (names := plain_names(start)) is not None:
        document_id = DocumentId(*names, rest)
        if not (rest.isascii() and rest.isprintable()):
            _check_text(document_id)
        return document_id
    parts = raw_path.removeprefix(ROOT).split("/", 3)
    if parts == [""]:
        return None
    if len(parts) < 3 or parts[2] not in _MODIFIERS:
        raise _nothing_at(raw_path)
    namespace, document_type = decode(parts[0]), decode(parts[1])
    if not namespace or not document_type:
        raise _nothing_at(raw_path)
    return _MODIFIERS[parts[2]](raw_path, namespace, document_type, parts[3] if len(parts) == 4 else "")


@lru_cache(maxsize=_STARTS_CACHED)
def plain_names(start: str) -> tuple[str, str] | None:
    """The namespace and the document type in the start of a path, behind which an id follows, where no character of
    either needs a closer look; None for any other start. A feed has one, or few."""
    names = start.removeprefix(ROOT).split("/")
    if not start.startswith(ROOT) or len(names) != 2 or not all(names):
        return None
    is_plain = start.isascii() and start.isprintable() and not any(each in start for each in "%+:")
    return (names[0], names[1]) if is_plain else None


def _nothing_at(raw_path: str) -> NotFound:
    return NotFound(f"Nothing at '{raw_path}'. {_PATHS}")


def _docid(_: str, namespace: str, document_type: str, rest: str) -> DocumentId | None:
    return _make_id(namespace, document_type, decode(rest)) if rest else None


def _number(raw_path: str, namespace: str, document_type: str, rest: str) -> DocumentId | None:
    text, _, user_specified = rest.partition("/")
    if not text:
        raise _nothing_at(raw_path)
    if not (text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) <= _MAX_NUMBER):
        raise InvalidInput(
            f"Failed parsing '{decode(text)}': the number of a document id is an unsigned 64-bit integer"
        )
    if not user_specified:
        return None
    return _make_id(namespace, document_type, decode(user_specified), number=int(text))


def _group(raw_path: str, namespace: str, document_type: str, rest: str) -> DocumentId | None:
    group, _, user_specified = rest.partition("/")
    if not group:
        raise _nothing_at(raw_path)
    return _make_id(namespace, document_type, decode(user_specified), group=decode(group)) if user_specified else None


_MODIFIERS: Final[Mapping[str, Callable[[str, str, str, str], DocumentId | None]]] = {
    "docid": _docid,
    "number": _number,
    "group": _group,
}


def _make_id(
    namespace: str, document_type: str, user_specified: str, number: int | None = None, group: str | None = None
) -> DocumentId:
    document_id = DocumentId(namespace, document_type, user_specified, number, group)
    text = document_id.text
    if text.count(":") != _COLONS:
        _check_colons(document_id)
    if not (text.isascii() and text.isprintable()):
        _check_text(document_id)
    return document_id


def _check_text(id: DocumentId) -> None:
    """Errors: InvalidInput for characters that are no text."""
    try:
        check_text(id.text)
    except ValueError as error:
        raise InvalidInput(f"Unparseable id '{id.text}': {error}") from None


def _check_colons(id: DocumentId) -> None:
    """Errors: InvalidInput for one in another part than the last."""
    for name, part in (("namespace", id.namespace), ("document type", id.document_type), ("group", id.group or "")):
        if ":" in part:
            raise InvalidInput(f"Unparseable id '{id.text}': the {name} contains ':'")


class Options(Struct, frozen=True):
    """The options of a request that this service acts on. Unknown ones are ignored, as Vespa does, and so are those
    that its method does not have."""

    timeout_ms: float = limits.DOCUMENT_TIMEOUT_MS
    trace_level: int = 0
    create: bool | None = None
    dry_run: bool = False
    condition: str | None = None
    cluster: str | None = None
    route: str | None = None
    field_set: str | None = None
    tensor_form: str = FORMS[0]
    time_left: TimeLeft = no_end
    """The time for what indexing calls."""


@lru_cache(maxsize=_OPTIONS_CACHED)
def read_options(query: str, method: str) -> Options:
    """The options of a query string; feeders send the same one over and over. Errors: InvalidInput."""
    parameters = decode_form(query)
    values: dict[str, object] = {}
    for name, text in parameters.items():
        known = OPTIONS.get(name)
        if known is None or method in NOT_OF.get(name, ()):
            continue
        if name == "dryRun" and method == "GET":
            text = "true"  # refused, whatever it says
        if not text:
            raise InvalidInput(f"Expected non-empty value for request property '{name}'")
        attribute, convert = known
        values[attribute] = convert(text)
    return Options(**values)  # type: ignore[arg-type]


def _timeout(text: str) -> float:
    try:
        value = timeout_ms(text)
    except ValueError as error:
        raise InvalidInput(f"Error parsing '{text}': {error}") from None
    return value or limits.DOCUMENT_TIMEOUT_MS


def read_trace_level(text: str) -> int:
    """Return how much a trace is to tell, from 0 to 9. Errors: InvalidInput."""
    if len(text) == 1 and text in "0123456789":
        return int(text)
    raise InvalidInput(f"Failed parsing '{text}': the trace level must be a number from 0 to 9")


def _boolean(text: str) -> bool:
    """As Boolean.parseBoolean of Java, which Vespa takes: whatever is not "true" is false."""
    return text.lower() == "true"


def _tensor_form(text: str) -> str:
    """The form of tensors; anything else means the default one, as in Vespa."""
    return text if text in FORMS else FORMS[0]


OPTIONS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "timeout": ("timeout_ms", _timeout),
    "tracelevel": ("trace_level", read_trace_level),
    "create": ("create", _boolean),
    "dryRun": ("dry_run", _boolean),
    "condition": ("condition", str),
    "cluster": ("cluster", str),
    "fieldSet": ("field_set", str),
    "route": ("route", str),
    "format.tensors": ("tensor_form", _tensor_form),
}
"""Parameter → the attribute of Options that it sets, and the conversion of its text."""
NOT_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "create": ("GET", "DELETE"),
    "condition": ("GET",),
    "route": ("GET",),
    "fieldSet": ("POST", "PUT", "DELETE"),
    "format.tensors": ("POST", "PUT", "DELETE"),
}
"""Options that have no meaning for these methods, so that it does not matter what they say."""


# Field sets: which fields of the documents an answer shows.
#
#     [document]                                   all fields of the documents as they were fed
#     [all]                                        those, and what indexing makes of them
#     [none]  [id]  [docid]                        none
#     type:[document]   type:f1,f2                 of one type
#     f1,f2                                        of any of the types; Vespa wants the type before them
#
# Vespa: https://docs.vespa.ai/en/schemas/documents.html#fieldsets


_DOCUMENT: Final = "[document]"
_ALL: Final = "[all]"
_NOTHING: Final = frozenset(("[none]", "[id]", "[docid]"))
_NONE: Final = frozenset[str]()


def read_field_set(
    text: str | None,
    types: Mapping[str, DocumentType],
    derived: Mapping[str, frozenset[str]],
    shown: Collection[str] | None = None,
) -> frozenset[str] | None:
    """The fields that are shown of documents of the types `shown` (None: all of `types`); None: all that were fed.

    `derived`: by type, the fields that indexing makes. Errors: InvalidInput for what is not in any of `types`.
    """
    if text is None:
        return None
    name, colon, members = text.rpartition(":")
    if colon and name not in types:
        known = ", ".join(f"'{known}'" for known in types)
        raise InvalidInput(f"The fieldSet '{text}' is of document type '{name}', which is none of {known}")
    asked = (name,) if colon else tuple(types)
    fed = _NONE.union(*(types[each].fields for each in asked))
    made = _NONE.union(*(derived.get(each, _NONE) for each in asked))
    if members == _DOCUMENT or (members == _ALL and not made):
        return None if not colon or {name} >= set(types if shown is None else shown) else fed
    if members == _ALL:
        return fed | made
    if members in _NOTHING:
        return _NONE
    chosen = frozenset(member.strip() for member in members.split(","))
    if unknown := sorted(chosen - fed - made):
        of = f"document type '{name}'" if colon else "document type " + ", ".join(f"'{known}'" for known in types)
        near = did_you_mean(unknown[0], fed | made)
        raise InvalidInput(f"No such field '{unknown[0]}' in {of} (fieldSet '{text}'){near}")
    return chosen
