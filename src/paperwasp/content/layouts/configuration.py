"""The configuration of a content node: the schemas of its documents, and the modes of their types."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from paperwasp.schema.model import Schema

NO_MODES: Final[Mapping[str, str]] = MappingProxyType({})


class Configuration(Struct, frozen=True):
    """The schemas of a node, with the modes of their types."""

    generation: int = 0
    schemas: Mapping[str, Schema] = field(default_factory=lambda: MappingProxyType({}))
    modes: Mapping[str, str] = field(default_factory=lambda: NO_MODES)
    distribution_key: int = 0
