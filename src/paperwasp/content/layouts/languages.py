"""The language that a document gives its texts: what the statements with `set_language` make of its fields.

It is computed wherever the terms of a text are needed, of the document alone, and is never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from paperwasp.document.ids import DocumentId
from paperwasp.document.types import STRING, DataType
from paperwasp.indexing.scope import Compiled, Run, Scope
from paperwasp.schema.indexing_language import parse_script

_NO_ID: Final = DocumentId("", "", "")
"""No statement here reads the id."""
_READING: Final = ("input", "select_input")


class DocumentLanguages:
    """Runs the statements of one document type. Any thread."""

    def __init__(self, statements: Sequence[str], types: Mapping[str, DataType]) -> None:
        self._steps = [_compile(statement, _types_of_inputs(statement, types)) for statement in statements]
        self._fixed = not any(map(_inputs, statements))

    @property
    def are_fixed(self) -> bool:
        """Whether all documents have the same languages."""
        return self._fixed

    def of(self, document: Mapping[str, Any], before: int) -> str:
        """The tag that is set once the first `before` statements have run; empty: none."""
        return self._tags(document)[before]

    def of_fields(self, documents: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> list[Mapping[str, str]]:
        """Return for each document the tag of every field in `before`: the one after that many statements."""
        if self._fixed:
            tags = self._tags({})
            return [{name: tags[count] for name, count in before.items()}] * len(documents)
        found: list[Mapping[str, str]] = []
        for document in documents:
            tags = self._tags(document)
            found.append({name: tags[count] for name, count in before.items()})
        return found

    def _tags(self, document: Mapping[str, Any]) -> list[str]:
        """The tag before the first statement, and after each of them."""
        run = Run(document, _NO_ID, 0, lambda _: 0)
        tags = [""]
        for step in self._steps:
            with suppress(ValueError, TypeError, ArithmeticError, LookupError):  # then the language stays
                step.after(None, run)
            tags.append(run.language)
        return tags


@lru_cache(maxsize=1024)
def _inputs(statement: str) -> frozenset[str]:
    names = [name for each in parse_script(statement).walk() if each.keyword in _READING for name in each.arguments]
    return frozenset(name.partition(".")[0] for name in names)


def _types_of_inputs(statement: str, types: Mapping[str, DataType]) -> tuple[tuple[str, DataType], ...]:
    return tuple((name, types[name]) for name in sorted(_inputs(statement)) if name in types)


@lru_cache(maxsize=1024)
def _compile(statement: str, types: Iterable[tuple[str, DataType]]) -> Compiled:
    return Scope("", STRING, dict(types)).compile(parse_script(statement), None)
