"""The result of a search as XML: `format=xml`, and `format=page`, which has a tag for each field.

The content nodes give the fields of a hit as JSON; the schema says what is a map, a weighted set, a struct or a tensor.

Vespa: XmlRenderer.java in com.yahoo.search.rendering and in com.yahoo.prelude.hitfield, PageTemplatesXmlRenderer.java
A hit has no `type` there: only those that tests make of FastHit.java have one.
Differs: without page templates, a page has no sections. Numbers have the fewest digits, as Double.toString has since
Java 19; before, it had more for some. An encoding that is not known is UTF-8, where Vespa's answer breaks off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson

from paperwasp.admin.monitoring.requests import SearchFacts
from paperwasp.base.patterns import compile_later
from paperwasp.container.search.groups_json import turns_of, values_json
from paperwasp.container.search.rendering import (
    Coverage,
    SearchError,
    SearchResult,
    features_json,
    hits_before_groups,
    status_of,
    summary_of,
)
from paperwasp.document.numbers import double_text
from paperwasp.document.tensor.json_format import tensor_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    map_of,
    part_of,
    weighted_set_of,
)
from paperwasp.errors import LanguageError
from paperwasp.http.messages import Response
from paperwasp.schema.model import Schema
from paperwasp.schema.summaries import DEFAULT
from paperwasp.schema.teaser_settings import HI_TAGS, Tags
from paperwasp.search.grouping.result_tree import BUCKETS, GroupIds, text_of
from paperwasp.search.grouping.shown_groups import GroupLists, HitLists, ShownGroups, ShownRoot, Turn
from paperwasp.search.grouping.values import Null
from paperwasp.search.query import Hit

XML_TYPE: Final = "text/xml"

_UTF_8: Final = "utf-8"
_MARKS: Final = (("&lt;hi&gt;", "<hi>"), ("&lt;/hi&gt;", "</hi>"), ("&lt;sep /&gt;", "<sep />"))
"""The tags of teasers and bolded texts, which are markup in XML, too."""


class ShownTypes:
    """The types of the fields that summaries show, by the schemas."""

    def __init__(self, schemas: Iterable[Schema] = ()) -> None:
        self._schemas = {schema.name: schema for schema in schemas}
        self._types: dict[tuple[str, str], DataType | None] = {}
        self._places: dict[str, Mapping[str, int]] = {}

    def type_of(self, document_type: str, name: str) -> DataType | None:
        """The type of a field of a summary; None: it is not known."""
        key = document_type, name
        if key not in self._types:
            schema = self._schemas.get(document_type)
            self._types[key] = None if schema is None else _type_in(schema, name)
        return self._types[key]

    def in_order(self, document_type: str, fields: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        """The fields of a hit, as the schema has them: SummaryClass.java (`deriveFields`)."""
        places = self._places.get(document_type)
        if places is None:
            schema = self._schemas.get(document_type)
            summaries = [] if schema is None else list(schema.summaries.values())
            summaries.sort(key=lambda summary: summary.name != DEFAULT)
            names = dict.fromkeys(name for summary in summaries for name in summary.fields)
            places = self._places[document_type] = {name: place for place, name in enumerate(names)}
        last = len(places)
        return sorted(fields.items(), key=lambda field: places.get(field[0], last))


_ENCODING: Final = compile_later(
    r"(?i)utf-?(?:8|16|16be|16le|32)|us-ascii|iso-?8859-\d{1,2}|windows-\d{3,4}|koi8-[ru]"
    r"|shift[-_]jis|euc-(?:jp|kr)|big5(?:-hkscs)?|gb(?:2312|k|18030)|iso-2022-(?:jp|kr)"
)
"""Encodings of text, as they are named; Python has others, too, which are none."""


def _type_in(schema: Schema, name: str) -> DataType | None:
    shown = (summary.fields[name] for summary in schema.summaries.values() if name in summary.fields)
    paths = next((field.sources for field in shown), (name,))
    field_name, _, below = paths[0].partition(".")
    field = schema.fields.get(field_name)
    if field is None:
        return None
    return part_of(field.type, below) if below else field.type


def respond_xml(result: SearchResult, format_: str, types: ShownTypes, tags: Tags = HI_TAGS) -> Response:
    """The whole answer, `xml` or `page`, in the encoding of the request: what that does not have is `?` in it. `tags`,
    which the application says, are markup in it."""
    text = (render_page if format_ == "page" else render_xml)(result, types)
    if tags != HI_TAGS:
        for mark in {tags.open, tags.close, tags.separator} - {""}:
            text = text.replace(escaped(mark), mark)
    encoding = _encoding(result.encoding)
    body = f'<?xml version="1.0" encoding="{encoding}" ?>\n{text}'.encode(encoding, "replace")
    code = result.errors[0].code if result.errors else -1
    about: SearchFacts = (result.total_count, result.hit_count, result.coverage, code, result.summary_ns)
    return Response(status_of(result), body, f"{XML_TYPE};charset={encoding}", about=about)


def _encoding(name: str) -> str:
    """The encoding of this name, UTF-8 where there is none for texts."""
    if not _ENCODING.fullmatch(name):
        return _UTF_8
    try:
        "".encode(name)
    except (LookupError, UnicodeError):
        return _UTF_8
    return name


def render_xml(result: SearchResult, types: ShownTypes) -> str:
    """The answer as XML."""
    attributes = attributes_of({"total-hit-count": result.total_count} | _coverage(result.coverage) | _timing(result))
    return _document("result", attributes, [*_before_hits(result), *_children(result, types, _hit, 1)])


def render_page(result: SearchResult, types: ShownTypes) -> str:
    """The answer as a page."""
    hits = _children(result, types, _page_hit, 2)
    content = [element("content", "", hits, 1)] if hits else []
    attributes = attributes_of({"version": "1.0"} | _coverage(result.coverage))
    return _document("page", attributes, [*_before_hits(result), *content])


_RenderHit = Callable[[str, Hit, SearchResult, ShownTypes, int], str]


def _children(result: SearchResult, types: ShownTypes, render: _RenderHit, level: int) -> list[str]:
    """The hits, and the root groups where they stand among them."""
    hits = [render(cluster, hit, result, types, level) for cluster, hit in result.hits]
    before = hits_before_groups(result)
    groups = [
        root_xml(root, level, partial(_in_list, cluster, result, types, render)) for cluster, root in result.groups
    ]
    return [*hits[:before], *groups, *hits[before:]]


def _in_list(cluster: str, result: SearchResult, types: ShownTypes, render: _RenderHit, hit: Hit, level: int) -> str:
    return render(cluster, hit, result, types, level)


def _document(tag: str, attributes: str, children: Sequence[str]) -> str:
    return element(tag, attributes, children, 0).lstrip("\n") + "\n"


def _coverage(coverage: Coverage | None) -> dict[str, object]:
    if coverage is None:
        return {}
    return {
        "coverage-docs": coverage.documents,
        "coverage-nodes": coverage.clusters,
        "coverage-full": not coverage.degraded,
        "coverage": coverage.percent,
        "results-full": coverage.full_clusters,
        "results": coverage.clusters,
    }


def _timing(result: SearchResult) -> dict[str, object]:
    return {name: f"{seconds:.3f}" for name, seconds in (result.timing or {}).items()}


def _before_hits(result: SearchResult) -> Iterator[str]:
    """The first error, the trace, and all errors."""
    if result.errors:
        first = result.errors[0]
        yield leaf("error", attributes_of({"code": first.code}), escaped(summary_of(first)), 1)
    if result.trace:
        yield element("meta", attributes_of({"type": "context"}), list(_steps(result.trace, 2)), 1)
    if result.errors:
        yield element("errordetails", "", [_error(error) for error in result.errors], 1)


def _steps(trace: Iterable[Mapping[str, Any]], level: int) -> Iterator[str]:
    for step in trace:
        if (message := step.get("message")) is not None:
            text = message if isinstance(message, str) else orjson.dumps(message).decode()
            yield leaf("p", "", escaped(text), level)
        if children := step.get("children"):
            yield element("p", "", list(_steps(children, level + 1)), level)


def _error(error: SearchError) -> str:
    attributes = {"source": error.source, "error": summary_of(error), "code": error.code}
    return leaf("error", attributes_of(attributes), escaped(error.message), 2)


def _hit(cluster: str, hit: Hit, result: SearchResult, types: ShownTypes, level: int) -> str:
    relevance = scalar_text(float(hit.relevance))
    attributes = attributes_of({"relevancy": relevance, "source": cluster})
    fields = [("relevancy", relevance), *_fields(cluster, hit, result, types, level + 1)]
    shown = [leaf("field", attributes_of({"name": name}), content, level + 1) for name, content in fields]
    return element("hit", attributes, shown, level)


def _page_hit(cluster: str, hit: Hit, result: SearchResult, types: ShownTypes, level: int) -> str:
    attributes = attributes_of({"relevance": float(hit.relevance), "source": cluster})
    fields = [("id", f"index:{cluster}/0/{hit.gid.hex()}"), *_fields(cluster, hit, result, types, level)]
    return element("hit", attributes, [leaf(name, "", content, level + 1) for name, content in fields], level)


def _fields(cluster: str, hit: Hit, result: SearchResult, types: ShownTypes, level: int) -> Iterator[tuple[str, str]]:
    """The fields of a hit with their content as XML, in the schema's order. `level`: of what is around it."""
    if (cluster, hit.document_type) in result.bare_types:
        return
    wanted = result.summary_fields
    if not wanted or "sddocname" in wanted:
        yield "sddocname", escaped(hit.document_type)
    for name, value in types.in_order(hit.document_type, orjson.loads(hit.fields)):
        yield name, content_of(value, types.type_of(hit.document_type, name), level)
    features = (("match", hit.match_features), ("summary", hit.summary_features), ("rank", hit.rank_features))
    for kind, values in features:
        if values is not None:
            yield f"{kind}features", escaped(features_json(values, result.tensor_form).decode())
    if (hit.show_document_id or wanted) and (not wanted or "documentid" in wanted):
        yield "documentid", escaped(hit.document_id)


def content_of(value: Any, data_type: DataType | None, level: int = 2) -> str:
    """The JSON of a value as XML; `level`: of the element that it is in."""
    match data_type:
        case TensorFieldType():
            return escaped(_tensor(value, data_type.tensor))
        case ArrayType(element=StructType() as entry) if isinstance(value, dict):
            return content_of(value, _shown_as(entry), level)
        case MapType() if isinstance(value, dict):
            pairs = ((key, content_of(item, data_type.value, level + 1)) for key, item in value.items())
            items = [f"<item><key>{escaped(key)}</key><value>{item}</value></item>" for key, item in pairs]
        case WeightedSetType() if isinstance(value, dict):
            items = [f'<item weight="{weight}">{escaped(key)}</item>' for key, weight in value.items()]
        case _ if isinstance(value, dict):
            types = dict(data_type.fields) if isinstance(data_type, StructType) else {}
            items = [_member(name, content_of(item, types.get(name), level + 1)) for name, item in value.items()]
        case _ if isinstance(value, list):
            element = data_type.element if isinstance(data_type, ArrayType) else None
            items = [f"<item>{content_of(item, element, level + 1)}</item>" for item in value]
        case _:
            return _single(value)
    if not items:
        return ""
    start, end = "\n" + "  " * (level + 1), "\n" + "  " * level
    return start + start.join(items) + end


def _shown_as(entry: StructType) -> DataType:
    """The type as which an array of structs is shown as an object: see `search.show.values.shape_of`."""
    key, value = entry.field("key"), entry.field("value")
    if key is not None and value is not None:
        return map_of(key, value)
    item = entry.field("item")
    assert item is not None
    return weighted_set_of(item)


def _member(name: str, content: str) -> str:
    return f'<struct-field name="{escaped(name, in_attribute=True)}">{content}</struct-field>'


def _single(value: Any) -> str:
    if value is None:
        return "(null)"
    text = escaped(scalar_text(value))
    if isinstance(value, str):
        for mark, markup in _MARKS:
            text = text.replace(mark, markup)
    return text


def _tensor(value: Any, type_: TensorType) -> str:
    """The literal of a tensor, in whatever form its JSON is."""
    try:
        tensor = tensor_of(value, type_, is_lenient=True)
    except LanguageError:
        return orjson.dumps(value).decode()
    type_text, _, cells = str(tensor).partition(":")
    return f"{type_text}:{cells if type_.mapped else cells.replace(',', ', ')}"


# The groups of an answer as XML.
#
# Vespa: HitRenderer.java in com.yahoo.search.grouping.result


RenderHit = Callable[[Any, int], str]
"""A hit as XML, on this level."""


def root_xml(root: ShownRoot, level: int, render: RenderHit) -> str:
    """The root group as an element on this level."""
    head = [empty("id", attributes_of({"type": "root"}), level + 1), _continuation("this", root.this, level + 1)]
    return _group(root.groups, 0, head, 1.0, level, render)


def _group(
    groups: ShownGroups, place: int, head: Sequence[str], relevance: float, level: int, render: RenderHit
) -> str:
    """One group with all that it has."""
    outputs = [
        leaf("output", attributes_of({"label": label}), escaped(_output(values[place])), level + 1)
        for label, values in groups.outputs
        if values[place] is not None
    ]
    hits = (_hit_list(lists, place, level + 1, render) for lists in groups.hit_lists)
    below = (_group_list(lists, place, level + 1, render) for lists in groups.group_lists)
    children = [*head, *outputs, *filter(None, hits), *filter(None, below)]
    return element("group", attributes_of({"relevance": relevance}), children, level)


def _output(value: Any) -> str:
    """The text of an output; of several values, their JSON."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        (written,) = values_json([value])
        return (written or b"").decode()
    return "" if value is Null.NULL else text_of(value) or ""


def _group_list(lists: GroupLists, place: int, level: int, render: RenderHit) -> str:
    if not lists.is_there[place]:
        return ""
    groups = lists.groups
    rows = range(lists.bounds[place], lists.bounds[place + 1])
    shown = [
        _group(groups, row, [_id(groups.ids, row, level + 2)], float(groups.relevances[row]), level + 1, render)
        for row in rows
    ]
    turns = _turns(lists.turns.get(place), level + 1)
    return _list("grouplist", lists.label, [*turns, *shown], level)


def _hit_list(lists: HitLists, place: int, level: int, render: RenderHit) -> str:
    hits = lists.hits[place]
    if hits is None:
        return ""
    turns = _turns(lists.turns.get(place), level + 1)
    shown = [render(hit, level + 1) for hit in hits]
    return _list("hitlist", lists.label, [*turns, *shown], level)


def _list(tag: str, label: str, children: Sequence[str], level: int) -> str:
    attributes = attributes_of({"label": label})
    return element(tag, attributes, children, level) if children else empty(tag, attributes, level)


def _id(ids: GroupIds, row: int, level: int) -> str:
    low = ids.texts[row]
    if low is None:
        return empty("id", attributes_of({"type": "null"}), level)
    kind: Mapping[str, object] = {"type": ids.kind.value}
    if ids.kind not in BUCKETS:
        return leaf("id", attributes_of(kind), escaped(low), level)
    limits = [leaf("from", "", escaped(low), level + 1), leaf("to", "", escaped(ids.highs[row] or ""), level + 1)]
    return element("id", attributes_of(kind), limits, level)


def _turns(turn: Turn | None, level: int) -> list[str]:
    return [] if turn is None else [_continuation(name, text, level) for name, text in turns_of(turn).items()]


def _continuation(name: str, text: str, level: int) -> str:
    return leaf("continuation", attributes_of({"id": name}), escaped(text), level)


# Elements of XML as texts, each on lines of its own.


_NO_XML: Final = compile_later("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def element(tag: str, attributes: str, children: Sequence[str], level: int) -> str:
    """An element on lines of its own; the children have theirs."""
    start, end = "\n" + "  " * level, "\n" + "  " * level if children else ""
    return f"{start}<{tag}{attributes}>{''.join(children)}{end}</{tag}>"


def leaf(tag: str, attributes: str, content: str, level: int) -> str:
    """`content` is XML already."""
    return f"\n{'  ' * level}<{tag}{attributes}>{content}</{tag}>"


def empty(tag: str, attributes: str, level: int) -> str:
    """An element of which nothing but its attributes was ever begun, which Vespa's XMLWriter.java writes short."""
    return f"\n{'  ' * level}<{tag}{attributes}/>"


def attributes_of(values: Mapping[str, object]) -> str:
    texts = {name: scalar_text(value) for name, value in values.items() if value is not None}
    return "".join(f' {name}="{escaped(text, in_attribute=True)}"' for name, text in texts.items() if text)


def escaped(text: str, *, in_attribute: bool = False) -> str:
    """Text as XML has it; characters that XML cannot have are left out."""
    text = _NO_XML.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;") if in_attribute else text


def scalar_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return double_text(value) if isinstance(value, float) else str(value)
