"""Texts with `%{name}` in them, which stands for the value of another property, and `%{.name}`, of one beside it.

Vespa: https://docs.vespa.ai/en/querying/query-profiles.html#value-substitution
"""

from __future__ import annotations

from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass

_OPENING: Final = "%{"
_HOLE: Final = compile_later(r"%\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Hole:
    """The place of a value in a text. `is_local`: the value beside this one in the profile, whatever a request says."""

    name: str
    is_local: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """A text with holes."""

    text: str
    parts: tuple[str | Hole, ...]

    @property
    def local_names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts if isinstance(part, Hole) and part.is_local)

    def __str__(self) -> str:
        return self.text


def parse_value(text: str) -> str | Template:
    """The text itself where there is nothing to substitute. Errors: ValueError for a substitution without an end."""
    if _OPENING not in text:
        return text
    parts: list[str | Hole] = []
    end = 0
    for match in _HOLE.finditer(text):
        _check_closed(text[end : match.start()] + match[1])
        parts.append(text[end : match.start()])
        name = match[1]
        parts.append(Hole(name.removeprefix("."), name.startswith(".")))
        end = match.end()
    _check_closed(text[end:])
    parts.append(text[end:])
    return Template(text, tuple(part for part in parts if part))


def _check_closed(text: str) -> None:
    if _OPENING in text:
        raise ValueError(f"Unterminated value substitution '{text[text.index(_OPENING) :]}'")
