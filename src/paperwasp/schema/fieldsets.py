"""Fieldsets: fields that are searched as one.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#fieldset
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.document.types import TensorFieldType, part_of
from paperwasp.schema.data_types import is_text
from paperwasp.schema.field_checks import STREAMING_ONLY
from paperwasp.schema.model import Field, FieldSet, Match, MatchSettings
from paperwasp.schema.tree import Problems, SchemaNode, integer, nearest

_MODES: Final[Mapping[str, Match]] = {
    "text": "text",
    "word": "word",
    "exact": "exact",
    "gram": "gram",
    "cased": "cased",
    "uncased": "uncased",
}


def resolve_fieldsets(
    nodes: Iterable[SchemaNode], fields: Mapping[str, Field], unusable: Collection[str], problems: Problems
) -> dict[str, FieldSet]:
    """The fieldsets that the elements declare. To name a field in `unusable` is not another problem."""
    fieldsets: dict[str, FieldSet] = {}
    for node in nodes:
        if node.name in fieldsets:
            problems.error(f"fieldset {node.name} is defined twice", node.position)
        fieldsets[node.name] = _fieldset(node, fields, unusable, problems)
        _check_mixture(fieldsets[node.name], fields, problems)
    return fieldsets


def _fieldset(node: SchemaNode, fields: Mapping[str, Field], unusable: Collection[str], problems: Problems) -> FieldSet:
    names: list[str] = []
    commands: list[str] = []
    match: Match | None = None
    settings = MatchSettings()
    for child in node.children:
        match child.keyword:
            case "fields":
                names += child.values
            case "query-command":
                commands.append(child.text)
            case _:
                modes = [_MODES[mode.keyword] for mode in child.children if mode.keyword in _MODES]
                match = next((mode for mode in modes if mode not in ("cased", "uncased")), next(iter(modes), match))
                settings = _settings(child, settings, problems)
    commanded = query_commands(commands)
    if match is None and commanded.match is not None:
        match = commanded.match
        settings = replace(
            settings,
            exact_terminator=commanded.terminator or settings.exact_terminator,
            gram_size=commanded.gram_size or settings.gram_size,
        )
    if not names:
        problems.error(f"fieldset {node.name} has no fields", node.position)
    for name in names:
        outer, _, path = name.partition(".")
        if path and outer in fields and part_of(fields[outer].type, path):
            sub = fields[outer].sub_fields.get(path)
            if sub is None or sub.attribute is None:
                script = fields[outer].script
                is_streamed = script is not None and bool(script.indexes)
                effect = f"naming it {STREAMING_ONLY}" if is_streamed else "so it is not searched"
                problems.warn(f"fieldset {node.name}: {name} is no attribute, {effect}", node.position)
        elif name not in fields and name not in unusable:
            message = f"fieldset {node.name} names a field that does not exist: {name!r}"
            problems.error(message + nearest(name, fields), node.position)
    return FieldSet(node.name, tuple(dict.fromkeys(names)), tuple(commands), match, settings, node.position)


def _settings(node: SchemaNode, settings: MatchSettings, problems: Problems) -> MatchSettings:
    """Reads the settings of a `match` beside the mode, as far as they are about queries."""
    for each in node.children:
        if each.keyword == "exact-terminator" and each.text:
            settings = replace(settings, exact_terminator=each.text)
        elif each.keyword == "gram-size":
            settings = replace(settings, gram_size=integer(each, problems, least=1))
    return settings


def _check_mixture(fieldset: FieldSet, fields: Mapping[str, Field], problems: Problems) -> None:
    """Warns of fields that one query cannot search alike."""
    members = [fields[name] for name in fieldset.fields if name in fields]
    for what, values in (
        ("match settings", {_mode(each) for each in members} if fieldset.match is None else set()),
        ("normalizing", {each.index.normalizing for each in members if each.index and is_text(each.type)}),
        ("stemming", {each.index.stemming for each in members if each.index and is_text(each.type)}),
    ):
        if len(values) > 1:
            message = f"the fields of fieldset {fieldset.name} have different {what}, so one query matches them unlike"
            problems.warn(message, fieldset.position)
    if len({isinstance(each.type, TensorFieldType) for each in members}) > 1:
        problems.warn(f"fieldset {fieldset.name} mixes tensors with other fields", fieldset.position)


def _mode(field: Field) -> str:
    """How the field matches, as far as that can differ between fields of one fieldset."""
    if not is_text(field.type):
        return "number"
    if field.match in (None, "cased", "uncased"):
        return "text" if field.index else "word"
    return str(field.match)


# Reads `query-command`, which sets how the words of a field or fieldset are read in queries.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#query-command, and com.yahoo.prelude.Index for the
# commands that it knows.


class QueryCommands(Struct, frozen=True):
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
    """Return whether a command has an effect here."""
    return query_commands((command,)) != QueryCommands()
