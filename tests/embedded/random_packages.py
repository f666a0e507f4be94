"""Strategies: application packages of several schemas, with documents that fit them and queries that may.

Most of what is drawn deploys; what does not fit together is drawn, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from paperwasp.document.types import (
    DOUBLE,
    FLOAT,
    FLOAT16,
    PREDICATE,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    MapType,
    NumericType,
    ReferenceType,
    StructType,
    TensorFieldType,
    WeightedSetType,
)
from tests.document.typed_values import TYPES, Typed, shown

SERVICES: Final = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="c" version="1.0">
    <redundancy>1</redundancy>
    <documents>{}</documents>
  </content>
</services>"""
ARTIST: Final = "schema artist { document artist { field born type int { indexing: attribute } } }"
INDEXING: Final = ("indexing: summary", "indexing: attribute", "indexing: index", "indexing: attribute | index", "")
PARTS: Final = (
    *("match: word", "match: cased", "match { gram gram-size: 2 }", "match: exact", "match: text", "rank: filter"),
    *("index: enable-bm25", "attribute: fast-search", "attribute: paged", "stemming: none", "bolding: on"),
    *("index { hnsw { max-links-per-node: 4 } }", "index { arity: 2 }", "weight: 30", "normalizing: none"),
    *("summary: dynamic", "dictionary: hash", "distance-metric: angular", "alias: other", "sorting: descending"),
    *("indexing-rewrite: none", "nonsense: 3"),
)
FEATURES: Final = ("attribute", "bm25", "fieldMatch", "nativeRank", "attributeMatch", "fieldLength", "closeness")


class DrawnSchema(NamedTuple):
    """A schema's text, the types of its own fields, and the schema whose document it inherits."""

    name: str
    text: str
    fields: Mapping[str, Typed]
    parent: str | None


class DrawnPackage(NamedTuple):
    schemas: tuple[DrawnSchema, ...]
    mode: str

    def files(self) -> dict[str, str]:
        """Of the package."""
        documents = "".join(f'<document type="{each.name}" mode="{self.mode}"/>' for each in self.schemas)
        artists = '<document type="artist" mode="index" global="true"/>'
        return {
            "services.xml": SERVICES.format(documents + artists),
            "schemas/artist.sd": ARTIST,
            **{f"schemas/{each.name}.sd": each.text for each in self.schemas},
        }

    def fields_of(self, schema: DrawnSchema) -> dict[str, Typed]:
        """Those of the document, inherited ones too."""
        parent = next((each for each in self.schemas if each.name == schema.parent), None)
        return {**({} if parent is None else self.fields_of(parent)), **schema.fields}


def _written(data_type: DataType, structs: dict[str, str], prefix: str) -> str:
    """The type as a schema has it; structs are declared under names of their own."""
    match data_type:
        case ArrayType():
            return f"array<{_written(data_type.element, structs, prefix)}>"
        case MapType():
            return f"map<{_written(data_type.key, structs, prefix)}, {_written(data_type.value, structs, prefix)}>"
        case WeightedSetType():
            return f"weightedset<{_written(data_type.key, structs, prefix)}>"
        case StructType():
            members = [f"field {name} type {_written(inner, structs, prefix)} {{}}" for name, inner in data_type.fields]
            name = f"s{len(structs)}of{prefix}"
            structs[name] = f"struct {name} {{ {' '.join(members)} }}"
            return name
    return str(data_type)


def _is_usual(data_type: DataType) -> bool:
    """Whether schemas may have the type: not every collection is of every type."""
    match data_type:
        case ArrayType():
            inner = data_type.element
            return _is_usual(inner) and not (isinstance(inner, TensorFieldType) or inner == PREDICATE)
        case WeightedSetType():
            return data_type.key not in (FLOAT, FLOAT16, DOUBLE)
        case MapType():
            return all(map(_is_usual, (data_type.key, data_type.value)))
        case StructType():
            return all(_is_usual(inner) for _, inner in data_type.fields)
    return True


def _careful(data_type: DataType) -> list[str]:
    """What may be said of a field of this type."""
    match data_type:
        case ArrayType() | WeightedSetType():
            inner = data_type.element if isinstance(data_type, ArrayType) else data_type.key
            simple = isinstance(inner, NumericType) or inner == STRING
            texts = ["indexing: index", "indexing: summary | index"] if inner == STRING else []
            return ["indexing: summary", *(["indexing: attribute", "indexing: summary | attribute"] * simple), *texts]
        case MapType() | StructType():
            return ["indexing: summary"]
        case TensorFieldType():
            return ["indexing: summary", "indexing: attribute", "indexing: summary | attribute"]
        case ReferenceType():
            return ["indexing: attribute"]
    if data_type == PREDICATE:
        return ["indexing: summary | attribute\n index { arity: 2 }"]
    if data_type == STRING:
        parts = ["match: word", "match { gram gram-size: 2 }", "index: enable-bm25", "stemming: none", "bolding: on"]
        return [f"indexing: summary | index\n {part}" for part in parts] + ["indexing: attribute | index"]
    if data_type in (RAW, URI):
        return ["indexing: summary"]
    return ["indexing: attribute", "indexing: summary | attribute\n attribute: fast-search", "indexing: summary"]


def _features(names: list[str]) -> st.SearchStrategy[str]:
    one = st.builds("{}({})".format, st.sampled_from(FEATURES), st.sampled_from([*names, "nothing"]))
    one |= st.sampled_from(["1.5", "query(q)", "nativeRank", "matches", "firstPhase", "now", "freshness(f0)"])
    return st.recursive(
        one,
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "<"]), inner)
            | st.builds("if ({} < {}, {}, {})".format, inner, inner, inner, inner)
            | st.builds("{}({})".format, st.sampled_from(["log", "exp", "sum", "nope"]), inner)
        ),
        max_leaves=3,
    )


def _careful_features(fields: Mapping[str, Typed]) -> st.SearchStrategy[str]:
    """Expressions over features that fields of these types have."""
    numbers = [name for name, (kind, _) in fields.items() if isinstance(kind, NumericType)]
    known = [f"attributeMatch({name})" for name in numbers] + ["nativeRank", "1.5", "now", "random"]
    one = st.sampled_from(known)
    return one | st.builds("({} {} {})".format, one, st.sampled_from(["+", "-", "*", "<"]), one)


@st.composite
def _schemas(draw: st.DrawFn, number: int, parents: tuple[DrawnSchema, ...], careful: bool) -> DrawnSchema:
    name = f"d{number}"
    parent = draw(st.sampled_from([None, *(each.name for each in parents)]))
    count = draw(st.integers(1, 3))
    types = TYPES.filter(lambda typed: _is_usual(typed[0])) if careful else TYPES
    fields = {f"f{number}x{place}" if parent else f"f{place}": draw(types) for place in range(count)}
    structs: dict[str, str] = {}
    lines = []
    for field, (data_type, _) in fields.items():
        written = _written(data_type, structs, name)
        said = draw(st.sampled_from(_careful(data_type) if careful else INDEXING))
        if not careful:
            said += "\n " + draw(st.sampled_from(PARTS))
        lines.append(f"field {field} type {written} {{ {said} }}")
    inherits = f" inherits {parent}" if parent else ""
    document = f"document {name}{inherits} {{\n{' '.join(structs.values())}\n" + "\n".join(lines) + "\n}"
    searched = [field for field in fields if not careful or fields[field][0] == STRING]
    fieldset = f"fieldset default {{ fields: {', '.join(searched)} }}\n" if searched else ""
    features = _careful_features(fields) if careful else _features(list(fields))
    first, second = draw(features), draw(features)
    profile = f"rank-profile p {{ first-phase {{ expression: {first} }}\nsecond-phase {{ expression: {second} }} }}"
    return DrawnSchema(name, f"schema {name} {{\n{document}\n{fieldset}{profile}\n}}", fields, parent)


@st.composite
def packages(draw: st.DrawFn) -> DrawnPackage:
    """Of one to three document types, the later of which may inherit the earlier."""
    schemas: tuple[DrawnSchema, ...] = ()
    careful = draw(st.sampled_from([True, True, True, False]))
    for number in range(draw(st.integers(1, 3))):
        schemas = (*schemas, draw(_schemas(number, schemas, careful)))
    return DrawnPackage(schemas, draw(st.sampled_from(["index", "index", "streaming"])))


def documents(fields: Mapping[str, Typed]) -> st.SearchStrategy[dict[str, Any]]:
    """Fields of a document, as JSON has them; some are missing."""
    return st.fixed_dictionaries(
        {}, optional={name: strategy.map(partial(_shown, kind)) for name, (kind, strategy) in fields.items()}
    )


def _shown(kind: DataType, value: Any) -> Any:
    return shown(value, kind)


def queries(schema: DrawnSchema, names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Parameters of a query about a document type: some ask what its fields do not have."""
    name = st.sampled_from([*names, *names, "nothing"])
    likely = st.sampled_from(["true", "userQuery()", '!(default contains "x")', 'default contains "a" or true'])
    condition = likely | st.one_of(
        st.builds('{} contains "{}"'.format, name, st.sampled_from(["a", "ab", "Ä", "0", "1"])),
        st.builds("{} > {}".format, name, st.integers(-3, 3)),
        st.builds("range({}, 0, 9L)".format, name),
        st.builds("{} matches 'a.*'".format, name),
        st.builds('{} contains sameElement(f0 contains "a")'.format, name),
        st.builds("{{targetHits: 3}}nearestNeighbor({}, q)".format, name),
        st.builds("dotProduct({}, {{'a': 1}})".format, name),
    )
    ending = st.just("") | st.builds(" order by {}".format, name)
    ending |= st.builds(" | all(group({}) each(output(count(), max({}))))".format, name, name)
    ranking = st.sampled_from(["p", "p", "unranked", "none"])
    return st.fixed_dictionaries(
        {
            "yql": st.builds(f"select * from {schema.name} where {{}}{{}}".format, condition, ending),
            "ranking": ranking,
            "timeout": st.just("60s"),
        },
        optional={
            "query": st.sampled_from(["a", "f0:a", "a -b", '"a b"']),
            "input.query(q)": st.sampled_from(["[1, 2]", "3", "{a: 1}"]),
            "ranking.firstPhase.expression": _features(names),
            "streaming.selection": st.just("true"),
            "summary": st.sampled_from(["default", "attributeprefetch"]),
            "ranking.listFeatures": st.just("true"),
            "trace.level": st.integers(0, 5),
        },
    )
