"""Summaries that show attributes alone, each as it is under its own name: what is asked of most searches for vectors.

They are written straight from the columns; `search.summary` writes all others, and these the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from paperwasp.document.output import Render
from paperwasp.storage.attributes import ColumnView


class ShownAttribute(NamedTuple):
    """An attribute that is shown under its own name."""

    name: str
    render: Render | None
    """How its values become JSON; None: they are JSON."""
    missing: object
    """What is shown where it is unset; None: nothing is."""


def attributes_json(
    attributes: Iterable[ShownAttribute], columns: Mapping[str, ColumnView], lids: Sequence[int]
) -> list[bytes]:
    """The JSON object of these attributes of each document. All of them have columns."""
    read = [(columns[attribute.name].get, *attribute) for attribute in attributes]
    written = []
    for lid in lids:
        shown = {}
        for get, name, render, missing in read:
            value = get(lid)
            found = missing if value is None else value if render is None else render(value)
            if found is not None:
                shown[name] = found
        written.append(orjson.dumps(shown, option=orjson.OPT_SERIALIZE_NUMPY))
    return written


def values_json(
    attributes: Iterable[ShownAttribute], columns: Mapping[str, ColumnView], lids: NDArray[np.uint32]
) -> list[bytes]:
    """For each of these attributes the JSON array of the values of all documents: null where nothing is shown."""
    return [_column_json(attribute, columns[attribute.name].get_all(lids)) for attribute in attributes]


def _column_json(attribute: ShownAttribute, values: list[Any]) -> bytes:
    _, render, missing = attribute
    if render is not None or missing is not None:
        values = [missing if value is None else value if render is None else render(value) for value in values]
    return orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)
