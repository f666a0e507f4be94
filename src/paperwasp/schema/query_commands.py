"""Reads `query-command`, which sets how the words of a field or fieldset are read in queries.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#query-command, and com.yahoo.prelude.Index for the
commands that it knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from paperwasp.base.records import dataclass
from paperwasp.schema.model import Match


@dataclass(frozen=True, slots=True)
class QueryCommands:
    """The settings of all commands of a field or fieldset; None and empty: not set."""

    match: Match | None = None
    terminator: str = ""
    gram_size: int | None = None
    phrase_segmenting: bool | None = None


def query_commands(commands: Iterable[str]) -> QueryCommands:
    """The commands of a field or fieldset. The others are for searchers written in Java."""
    found = QueryCommands()
    for command in commands:
        word, _, argument = command.partition(" ")
        match word:
            case "word":
                found = replace(found, match="word")
            case "exact":
                found = replace(found, match="exact", terminator=argument or " ")
            case "ngram" if argument.isdecimal() and 0 < len(argument) <= 3 and int(argument):
                found = replace(found, match="gram", gram_size=int(argument))
            case "phrase-segmenting":
                found = replace(found, phrase_segmenting=argument.lower() in ("", "true"))
    return found


def is_known(command: str) -> bool:
    """Whether a command has an effect here."""
    return query_commands((command,)) != QueryCommands()
