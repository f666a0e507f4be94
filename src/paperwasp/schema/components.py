"""Components as services.xml declares them. The indexing scripts of a schema call some of them by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from paperwasp.base.records import dataclass
from paperwasp.errors import Position

_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Component:
    """A component, handler, searcher, renderer or embedder: what kind, its id, and the text of what is in it."""

    kind: str
    """The tag that it is written with."""
    id: str
    type: str = ""
    """The type of built-in components: `hugging-face-embedder`, …"""
    class_name: str = ""
    bundle: str = ""
    settings: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """Path of the child element (`transformer-model`, `transformer-model@path`) → its text or attribute. The second of
    several is `model#2`."""
    position: Position | None = None
