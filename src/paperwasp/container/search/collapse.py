"""Field collapsing: of the hits with one value in a field, the best few are shown.

The hits are asked for in growing batches until enough are left, as far as there are more. Hits without a value all
stay. Of several fields each collapses what the ones before have left.
Vespa: https://docs.vespa.ai/en/querying/result-diversity.html, FieldCollapsingSearcher
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Any, Final

import orjson

from paperwasp import limits
from paperwasp.container.search.settings import Collapse
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Schema
from paperwasp.search.query import Hit

EXTRA: Final = 2.0
"""How many times more hits are asked for than before, as many fall away."""
MAX_BATCHES: Final = 5

Entry = tuple[str, Hit]
"""A cluster and a hit of it."""


def prefetched(collapse: Collapse, schemas: Sequence[Schema]) -> tuple[str, ...]:
    """Return the fields whose values the clusters give beside the hits: attributes. Others are read in the hits.

    Errors: InvalidQuery for too many fields, and where no document type has one, or the summary for collapsing.
    """
    if len(collapse.fields) > limits.COLLAPSE_FIELDS:
        raise InvalidQuery(f"Could not collapse by {len(collapse.fields)} fields: at most {limits.COLLAPSE_FIELDS}")
    for name in collapse.fields:
        if not any(schema.field_named(name) or _is_shown(name, schema) for schema in schemas):
            raise InvalidQuery(f"Could not collapse by '{name}': no field of this name is searched")
    if collapse.summary and not any(collapse.summary in schema.summaries for schema in schemas):
        raise InvalidQuery(f"Could not collapse by summary '{collapse.summary}': there is no such summary class")
    return tuple(name for name in collapse.fields if any(_is_attribute(name, schema) for schema in schemas))


def _is_shown(name: str, schema: Schema) -> bool:
    return any(name in summary.fields for summary in schema.summaries.values())


def _is_attribute(name: str, schema: Schema) -> bool:
    field = schema.field_named(name)
    return field is not None and field.attribute is not None


def batches(offset: int, hits: int) -> Iterator[tuple[int, int]]:
    """The windows (offset, hits) to request in turn, while too few hits are left of a page."""
    wanted = ceil((offset + hits + 1) * EXTRA) if hits else 0
    start = 0
    for _ in range(MAX_BATCHES):
        yield start, wanted
        start += wanted
        wanted = ceil(wanted * EXTRA)


def collapsed(entries: Iterable[Entry], collapse: Collapse) -> list[Entry]:
    """The hits that are left, in their order."""
    left = list(entries)
    for name in collapse.fields:
        size = collapse.sizes.get(name, collapse.size)
        seen: dict[str, int] = {}
        kept = []
        for entry in left:
            value = _value(entry[1], name)
            if value is not None:
                seen[value] = seen.get(value, 0) + 1
            if value is None or seen[value] <= size:
                kept.append(entry)
        left = kept
    return left


def _value(hit: Hit, name: str) -> str | None:
    """The value of a field as text, by which hits are alike; None: it has none."""
    value: Any = hit.attributes.get(name) if hit.attributes else None
    if value is None and not (hit.attributes and name in hit.attributes):
        value = orjson.loads(hit.fields).get(name)
    if value is None or value == "" or value == []:
        return None
    return value if isinstance(value, str) else repr(value)
