"""The result of a search as XML: `format=xml`, and `format=page`, which has a tag for each field.

The content nodes give the fields of a hit as JSON; the schema says what is a map, a weighted set, a struct or a tensor.

Vespa: XmlRenderer.java in com.yahoo.search.rendering and in com.yahoo.prelude.hitfield, PageTemplatesXmlRenderer.java
A hit has no `type` there: only those that tests make of FastHit.java have one.
Differs: without page templates, a page has no sections. Numbers have the fewest digits, as Double.toString has since
Java 19; before, it had more for some. Answers are UTF-8 whatever `model.encoding` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import orjson

from paperwasp.container.search.groups_xml import root_xml
from paperwasp.container.search.rendering import (
    Coverage,
    SearchError,
    SearchResult,
    features_json,
    hits_before_groups,
    status_of,
    summary_of,
)
from paperwasp.container.search.xml_elements import attributes_of, element, escaped, leaf, scalar_text
from paperwasp.document.parts import part_of
from paperwasp.document.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    map_of,
    weighted_set_of,
)
from paperwasp.errors import LanguageError
from paperwasp.http.messages import Response
from paperwasp.monitoring.search_facts import SearchFacts
from paperwasp.schema.model import Schema
from paperwasp.schema.teaser_settings import HI_TAGS, Tags
from paperwasp.search.query import Hit
from paperwasp.tensor.json_format import tensor_of
from paperwasp.tensor.types import TensorType

XML_TYPE: Final = "text/xml;charset=utf-8"

TypeOf = Callable[[str, str], DataType | None]
"""Document type, field of a summary → its type; None: not known."""

_HEAD: Final = '<?xml version="1.0" encoding="utf-8" ?>\n'
_MARKS: Final = (("&lt;hi&gt;", "<hi>"), ("&lt;/hi&gt;", "</hi>"), ("&lt;sep /&gt;", "<sep />"))
"""The tags of teasers and bolded texts, which are markup in XML, too."""


def types_of(schemas: Iterable[Schema]) -> TypeOf:
    """The types of what summaries show."""
    by_name = {schema.name: schema for schema in schemas}

    @cache
    def type_of(document_type: str, name: str) -> DataType | None:
        schema = by_name.get(document_type)
        return None if schema is None else _type_in(schema, name)

    return type_of


def _type_in(schema: Schema, name: str) -> DataType | None:
    shown = (summary.fields[name] for summary in schema.summaries.values() if name in summary.fields)
    paths = next((field.sources for field in shown), (name,))
    field_name, _, below = paths[0].partition(".")
    field = schema.fields.get(field_name)
    if field is None:
        return None
    return part_of(field.type, below) if below else field.type


def respond_xml(result: SearchResult, format_: str, type_of: TypeOf, tags: Tags = HI_TAGS) -> Response:
    """The whole answer, `xml` or `page`. `tags`, which the application says, are markup in it."""
    body = (render_page if format_ == "page" else render_xml)(result, type_of)
    if tags != HI_TAGS:
        for mark in {tags.open, tags.close, tags.separator} - {""}:
            body = body.replace(escaped(mark).encode(), mark.encode())
    code = result.errors[0].code if result.errors else -1
    about: SearchFacts = (result.total_count, result.hit_count, result.coverage, code, result.summary_ns)
    return Response(status_of(result), body, XML_TYPE, about=about)


def render_xml(result: SearchResult, type_of: TypeOf) -> bytes:
    """The answer as XML."""
    attributes = attributes_of({"total-hit-count": result.total_count} | _coverage(result.coverage) | _timing(result))
    return _document("result", attributes, [*_before_hits(result), *_children(result, type_of, _hit, 1)])


def render_page(result: SearchResult, type_of: TypeOf) -> bytes:
    """The answer as a page."""
    hits = _children(result, type_of, _page_hit, 2)
    content = [element("content", "", hits, 1)] if hits else []
    attributes = attributes_of({"version": "1.0"} | _coverage(result.coverage))
    return _document("page", attributes, [*_before_hits(result), *content])


_RenderHit = Callable[[str, Hit, SearchResult, TypeOf, int], str]


def _children(result: SearchResult, type_of: TypeOf, render: _RenderHit, level: int) -> list[str]:
    """The hits, and the root groups where they stand among them."""
    hits = [render(cluster, hit, result, type_of, level) for cluster, hit in result.hits]
    before = hits_before_groups(result)
    groups = [
        root_xml(root, level, partial(_in_list, cluster, result, type_of, render)) for cluster, root in result.groups
    ]
    return [*hits[:before], *groups, *hits[before:]]


def _in_list(cluster: str, result: SearchResult, type_of: TypeOf, render: _RenderHit, hit: Hit, level: int) -> str:
    return render(cluster, hit, result, type_of, level)


def _document(tag: str, attributes: str, children: Sequence[str]) -> bytes:
    return (_HEAD + element(tag, attributes, children, 0).lstrip("\n") + "\n").encode()


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


def _hit(cluster: str, hit: Hit, result: SearchResult, type_of: TypeOf, level: int) -> str:
    relevance = scalar_text(float(hit.relevance))
    attributes = attributes_of({"relevancy": relevance, "source": cluster})
    fields = [("relevancy", relevance), *_fields(cluster, hit, result, type_of, level + 1)]
    shown = [leaf("field", attributes_of({"name": name}), content, level + 1) for name, content in fields]
    return element("hit", attributes, shown, level)


def _page_hit(cluster: str, hit: Hit, result: SearchResult, type_of: TypeOf, level: int) -> str:
    attributes = attributes_of({"relevance": float(hit.relevance), "source": cluster})
    fields = [("id", f"index:{cluster}/0/{hit.gid.hex()}"), *_fields(cluster, hit, result, type_of, level)]
    return element("hit", attributes, [leaf(name, "", content, level + 1) for name, content in fields], level)


def _fields(cluster: str, hit: Hit, result: SearchResult, type_of: TypeOf, level: int) -> Iterator[tuple[str, str]]:
    """The fields of a hit with their content as XML, in the order of JSON. `level`: of what is around the content."""
    if (cluster, hit.document_type) in result.bare_types:
        return
    wanted = result.summary_fields
    if not wanted or "sddocname" in wanted:
        yield "sddocname", escaped(hit.document_type)
    if (hit.show_document_id or wanted) and (not wanted or "documentid" in wanted):
        yield "documentid", escaped(hit.document_id)
    for name, value in orjson.loads(hit.fields).items():
        yield name, content_of(value, type_of(hit.document_type, name), level)
    features = (("match", hit.match_features), ("summary", hit.summary_features), ("rank", hit.rank_features))
    for kind, values in features:
        if values is not None:
            yield f"{kind}features", escaped(features_json(values, result.tensor_form).decode())


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
    """The type as which an array of structs is shown as an object: see `summary_values.pairing_of`."""
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
