"""Annotations set on a whole tree at once: on every term of a filter, of a user's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paperwasp.search.operators.item import Annotated, Item


def marked(item: Item, given: Mapping[str, object]) -> Item:
    """`item` with the annotations `given`, by the names of `Annotations`, on each term in it."""
    if not given:
        return item
    item = item.map_parts(lambda part: marked(part, given))
    if isinstance(item, Annotated):
        item = replace(item, annotations=replace(item.annotations, **given))  # type: ignore[arg-type]
    return item
