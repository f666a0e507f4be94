"""The defaults of records, as golden scripts need them to show of a record only what is not as by default."""

from __future__ import annotations

from typing import Any

from msgspec import NODEFAULT, Struct


def defaults_of(record: Struct | type[Struct]) -> dict[str, Any]:
    """Field → its default, `NODEFAULT` where it has none, in the order of the fields."""
    names, defaults = record.__struct_fields__, record.__struct_defaults__
    given = (NODEFAULT,) * (len(names) - len(defaults)) + defaults
    return {name: _made(default) for name, default in zip(names, given, strict=True)}


def _made(default: Any) -> Any:
    make = getattr(default, "factory", None) if type(default).__name__ == "Factory" else None
    return default if make is None else make()
