"""The circumstances in which a script calls a component."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a call of a component, beside the text."""

    destination: str
    """The field that the value is for: `schema.field`."""
    language: str = ""
    """A language tag; empty: unknown."""
    arguments: tuple[str, ...] = ()
