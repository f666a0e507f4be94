"""The application of the rounds: the document type of `tests/content/document_model`, in versions, as packages.

Beside `thing`, which has fields of every type, there is the global type `base`, to which its `parent` refers. Versions
differ in what is an attribute, has a graph, is stemmed, is indexed, and in a field that every other one lacks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from tests.content.document_schemas import GRAPHS, INDEXED, MADE, PARTS, TYPES, VARIANTS, attributes_of, parts_of

BASES: Final = 6
"""Documents of type `base`."""
MIXED: Final = "tensor<float>(m{},x[2])"
_MADE: Final = {
    "lower": "string { indexing: input title | lowercase | summary | index\n stemming: none",
    "echo": "long { indexing: input total | summary",
    "tenfold": "int { indexing: input count * 10 | summary",
    "copied": "array<string> { indexing: input tags | summary",
}
_MORE: Final = {
    "marks": "weightedset { create-if-nonexistent\n remove-if-zero }",
    "rule": "index { arity: 2 }",
}
_OVERRIDES: Final = (
    "hnsw-settings-change",
    "indexing-change",
    "field-type-change",
    "schema-removal",
    "content-cluster-removal",
)
_SERVICES: Final = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="things" version="1.0"><redundancy>1</redundancy>
    <documents><document type="thing" mode="index"/><document type="base" mode="index" global="true"/></documents>
    <nodes><node hostalias="node1" distribution-key="0"/></nodes>
    <tuning><resource-limits><disk>0.999</disk></resource-limits></tuning>
  </content>
</services>"""


def files(version: int) -> dict[str, str]:
    """The package of a version."""
    until = (datetime.now(UTC).date() + timedelta(days=20)).isoformat()
    allowed = "".join(f'<allow until="{until}">{name}</allow>' for name in _OVERRIDES)
    return {
        "services.xml": _SERVICES,
        "validation-overrides.xml": f"<validation-overrides>{allowed}</validation-overrides>",
        "schemas/thing.sd": _thing(version),
        "schemas/base.sd": _base(version),
    }


def attributes(version: int) -> frozenset[str]:
    """The fields of `thing` that are attributes in a version."""
    return attributes_of(version % VARIANTS) - {"link"}  # Vespa has no attributes of type uri


def has_more(version: int) -> bool:
    """Whether `base` has the field `more`."""
    return version % 2 == 1


def graphs(version: int) -> tuple[str, ...]:
    """The fields whose vectors are searched through a graph in a version, or compared."""
    found = ("dense",) if "dense" in attributes(version) else ()
    return (*found, "mixed") if version % VARIANTS != 2 else found


def _thing(version: int) -> str:
    variant = version % VARIANTS
    fed = "\n".join(_field(name, variant) for name in TYPES if name != "mixed")
    made = "\n".join(
        f"field {name} type {_MADE[name]}{' | attribute' if name in attributes(variant) else ''} }}" for name in MADE
    )
    mixed = ("attribute", "attribute | index", None, "attribute | index")[variant]
    mixed = f"{mixed} | summary" if mixed else "summary"
    return f"""# version {version}
schema thing {{
  document thing {{
    struct pair {{
      field a type int {{}}
      field b type string {{}}
    }}
    {fed}
    field mixed type {MIXED} {{ indexing: {mixed} }}
  }}
  {made}
  import field parent.year as parent_year {{}}
  import field parent.name as parent_name {{}}
  document-summary default {{ summary parent_year {{}}
    summary parent_name {{}} }}
  rank-profile default {{ first-phase {{ expression: 1 }} }}
  rank-profile near {{ inputs {{ query(q) tensor<float>(x[2]) }}
    first-phase {{ expression: {"closeness(field, dense)" if "dense" in attributes(variant) else "1"} }} }}
}}
"""


def _field(name: str, variant: int) -> str:
    is_attribute = name in attributes(variant)
    graph = GRAPHS[variant] if name == "dense" and is_attribute else None
    steps = ["attribute"] if is_attribute else []
    if graph is not None or (name in INDEXED and (name != "artist" or variant % 2 == 0)):
        steps.append("index")
    kind = "reference<base>" if name == "parent" else str(TYPES[name])
    more = [_MORE[name]] if name in _MORE and (name != "rule" or is_attribute) else []
    if name == "title":
        more.append(f"stemming: {'none' if variant < 2 else 'best'}")
    if name == "count" and is_attribute and variant % 2 == 0:
        more.append("attribute: fast-search")
    if name == "dense" and is_attribute and variant % 2 == 1 and graph is None:
        more.append("attribute: paged")
    if graph is not None and graph.hnsw is not None:
        more.append(f"index {{ hnsw {{ max-links-per-node: {graph.hnsw.max_links_per_node}\n"
                    f" neighbors-to-explore-at-insert: {graph.hnsw.neighbors_to_explore_at_insert} }} }}")  # fmt: skip
    if name in parts_of(variant):
        more += [f"struct-field {path} {{ indexing: attribute }}" for path in PARTS[name]]
    return f"field {name} type {kind} {{ indexing: {' | '.join([*steps, 'summary'])}\n" + "\n".join(more) + "\n}"


def _base(version: int) -> str:
    more = "field more type string { indexing: attribute | summary }" if has_more(version) else ""
    return f"""schema base {{
  document base {{
    field year type int {{ indexing: attribute | summary }}
    field name type string {{ indexing: attribute | summary }}
    {more}
  }}
}}
"""
