"""Puts and updates on their way to the content cluster: what the schema's scripts make of their values.

    put       all scripts run; what they make is added to the document's own fields
    update    scripts run on the values that are assigned; what changes a value in place, such as `add` or
              `increment`, is done to the fields made of that one alone as well (`updates`)

The field that cannot be made for want of an input is not set, by an update not changed.

Vespa: https://docs.vespa.ai/en/writing/indexing.html, com.yahoo.docprocs.indexing
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Value
from paperwasp.document.types import ArrayType, NumericType, WeightedSetType, is_uri
from paperwasp.document.updates import Add, Assign, Calculate, FieldUpdate, Match, Take
from paperwasp.errors import Finding, InvalidInput, LanguageError, Overload, Timeout, Unavailable
from paperwasp.indexing.compiler import FieldScript, compile_scripts
from paperwasp.indexing.components import BUILT_IN, Components, TimeLeft, no_end
from paperwasp.indexing.scope import Run, is_number
from paperwasp.schema.indexing_tree import Expression
from paperwasp.schema.model import Field, Schema
from paperwasp.schema.pending import is_indexed_now

_SHOWN = 500
_SLOW = frozenset({"embed", "generate"})
_REFUSALS = (InvalidInput, ValueError, TypeError, ArithmeticError, LookupError, RecursionError, MemoryError)
"""The errors of scripts, and of the components that they call, that are the document's."""


class Processor:
    """Runs the scripts of one schema. Any thread."""

    def __init__(
        self,
        scripts: Iterable[FieldScript],
        environment: Environment = SYSTEM,
        below: Callable[[int], int] = random.randrange,
    ) -> None:
        self._scripts = tuple(scripts)
        self._environment = environment
        self._below = below
        self.fields = frozenset(script.field.name for script in self._scripts if not script.field.in_document)
        """Those that the scripts make."""
        self.is_slow = any(_calls_component(script) for script in self._scripts)
        """Whether scripts call components of an application: they may take long, and are not for an event loop."""
        self._counters = {script.field.name: _zero(script.field) for script in self._scripts if _is_counter(script)}

    def derived(self, id: DocumentId, fields: Mapping[str, Value], time_left: TimeLeft = no_end) -> dict[str, Value]:
        """The fields that the scripts make of a whole document. `time_left`: that of the operation.

        Errors, as of all here: InvalidInput that names the field; Overload, Timeout, Unavailable of a component.
        """
        return {**self._counters, **self._outputs(self._run(self._new_run(id, fields, time_left)))}

    def put(self, id: DocumentId, fields: Mapping[str, Value], time_left: TimeLeft = no_end) -> dict[str, Value]:
        """The document with what the scripts make of it. Errors: InvalidInput that names the field."""
        return {**fields, **self.derived(id, fields, time_left)}

    def update(
        self, id: DocumentId, updates: tuple[FieldUpdate, ...], time_left: TimeLeft = no_end
    ) -> tuple[FieldUpdate, ...]:
        """The updates with those of the fields that are made of what they change. Errors: InvalidInput."""
        assigned: dict[str, Value] = {}
        partial: list[FieldUpdate] = []
        for update in updates:
            action = update.action
            if not update.path and isinstance(action, Assign) and action.value is not None:
                assigned[update.field] = action.value
            else:
                partial.append(update)
        added: list[FieldUpdate] = []
        for update in partial:
            added += self._of_partial(id, update, time_left)
        if assigned:
            made = self._outputs(self._run(self._new_run(id, assigned, time_left, is_update=True)))
            added += (FieldUpdate(name, Assign(value)) for name, value in made.items())
        return (*updates, *added) if added else updates

    def _of_partial(self, id: DocumentId, update: FieldUpdate, time_left: TimeLeft) -> list[FieldUpdate]:
        found: list[FieldUpdate] = []
        for script in self._scripts:
            if script.inputs != {update.field} or script.field.in_document:
                continue

            def convert(value: Value, script: FieldScript = script) -> Value | None:
                run = self._new_run(id, {update.field: value}, time_left, is_update=True)
                self._execute(script, run)
                return run.outputs.get(script.field.name)

            found += derived_updates(update, script, convert)
        return found

    def _run(self, run: Run) -> Run:
        for script in self._scripts:
            if not run.is_update or not script.inputs.isdisjoint(run.inputs):
                self._execute(script, run)
        return run

    def _new_run(
        self, id: DocumentId, fields: Mapping[str, Value], time_left: TimeLeft, *, is_update: bool = False
    ) -> Run:
        now_seconds = self._environment.time_ns() // 10**9
        return Run(fields, id, now_seconds, self._below, is_update, time_left=time_left)

    def _execute(self, script: FieldScript, run: Run) -> None:
        try:
            script.run(run)
        except (Overload, Timeout, Unavailable) as error:
            raise type(error)(_problem(script, run, error.message)) from None
        except _REFUSALS as error:
            reason = error.message if isinstance(error, InvalidInput) else str(error)[:_SHOWN]
            raise InvalidInput(_problem(script, run, reason or type(error).__name__)) from None

    def _outputs(self, run: Run) -> dict[str, Value]:
        """The outputs for fields outside the document; fields of the document itself are not changed."""
        return {name: value for name, value in run.outputs.items() if name in self.fields}


def _calls_component(script: FieldScript) -> bool:
    tree = script.field.script.tree if script.field.script is not None else None
    return tree is not None and any(_is_slow(each) for each in tree.walk())


def _is_slow(expression: Expression) -> bool:
    is_chunker = expression.keyword == "chunk" and expression.arguments[0] not in BUILT_IN.chunkers
    return is_chunker or expression.keyword in _SLOW


def _problem(script: FieldScript, run: Run, reason: str) -> str:
    return f"In document '{run.id.text}': Could not index field '{script.field.name}': {reason}"


def _is_counter(script: FieldScript) -> bool:
    """Whether the field is one that rank profiles change: it is 0 where nothing sets it."""
    settings = script.field.attribute
    return settings is not None and settings.mutable and not script.field.in_document


def _zero(field: Field) -> Value:
    return 0 if isinstance(field.type, NumericType) and field.type.low is not None else 0.0


def processor_of(
    schema: Schema, components: Components = BUILT_IN, environment: Environment = SYSTEM
) -> Processor | None:
    """The scripts of a schema that was checked; None: it has none that make anything."""
    compiled = [script for script in compile_scripts(schema, components) if not isinstance(script, LanguageError)]
    if all(script.field.in_document for script in compiled):
        return None
    return Processor(compiled, environment)


# Turns updates that do not assign a whole field into updates of the fields that are made of that field alone.
#
#     assign null, remove of all    the field is cleared
#     add, remove of elements       so are the elements that the script makes of them, in a collection
#     match, of an element          the same at the same place of an array; at the key that the script makes of a key
#     increment, …                  is done as it is, to a number
#     changes of cells, paths       are done as they are where the field is a copy; else the field stays as it is
#
# Vespa: com.yahoo.vespa.indexinglanguage.FieldUpdateFieldValues Differs: Vespa runs a script on an empty value to clear
# what it makes, and fails where that is none that it can convert.


Convert = Callable[[Value], Value | None]
"""Applies a script to a value of its input; None: it makes no value."""


def derived_updates(update: FieldUpdate, script: FieldScript, convert: Convert) -> list[FieldUpdate]:
    """The updates of the script's field. Errors: ValueError for an element that cannot be converted."""
    name, action = script.field.name, update.action
    if script.copies:
        return [replace(update, field=name)]
    if not update.path:
        return [FieldUpdate(name, found) for found in _whole(action, script, convert)]
    if len(update.path) == 1 and isinstance(update.path[0], Match):
        return _update_element(update, update.path[0], script, convert)
    return []


def _whole(action: Any, script: FieldScript, convert: Convert) -> list[Any]:
    type_ = script.field.type
    match action:
        case Assign(value=None) | Take(values=None):
            return [Assign(None)]
        case Add() if isinstance(type_, ArrayType | WeightedSetType):
            values = convert(action.values)
            return [Add(values)] if values else []
        case Take(values=values) if values and isinstance(type_, ArrayType | WeightedSetType):
            given = dict.fromkeys(values, 1) if isinstance(script.takes, WeightedSetType) else list(values)
            found = convert(given)
            return [Take(tuple(found))] if found else []
        case Calculate() if is_number(type_):
            return [action]
    return []


def _update_element(update: FieldUpdate, place: Match, script: FieldScript, convert: Convert) -> list[FieldUpdate]:
    name, type_, action = script.field.name, script.field.type, update.action
    if isinstance(type_, ArrayType):
        if not isinstance(action, Assign) or action.value is None:
            return [replace(update, field=name)]
        made = convert([action.value]) if isinstance(script.takes, ArrayType) else None
        return [FieldUpdate(name, Assign(each), update.path) for each in made or ()][:1]
    if isinstance(type_, WeightedSetType) and isinstance(script.takes, WeightedSetType):
        return [FieldUpdate(name, action, (Match(key),)) for key in convert({place.element: 1}) or ()]
    return []


# Texts that are to be tokenized and are likely bytes of something else: most of them could not be decoded.
#
# Vespa: LinguisticsAnnotator.java (`isLikelyBinaryData`), with the defaults of ilscripts.def
# Differs: reindexing tokenizes the texts of documents that are there already, where Vespa leaves them out.


_REPLACEMENT: Final = "\ufffd"
_SHARE: Final = 0.25
"""The part of a text that may be replacement characters, however many these are."""
_TOKENIZED: Final = frozenset({None, "text", "cased", "uncased"})


def tokenized_fields(schema: Schema) -> frozenset[str]:
    """The indexed fields whose texts are tokenized."""
    indexed = [field for field in schema.fields.values() if is_indexed_now(field) and not is_uri(field.type)]
    return frozenset(field.name for field in indexed if field.match in _TOKENIZED)


def check_put(id: DocumentId, tokenized: Iterable[str], values: Mapping[str, Value]) -> None:
    """Errors: InvalidInput for a text with too many replacement characters."""
    for name in tokenized:
        value = values.get(name)
        if value is not None:
            _check(id, value)


def check_updates(id: DocumentId, tokenized: frozenset[str], updates: Iterable[FieldUpdate]) -> None:
    """The same of what updates assign."""
    for update in updates:
        if update.field in tokenized and isinstance(update.action, Assign) and update.action.value is not None:
            _check(id, update.action.value)


def _check(id: DocumentId, value: Value) -> None:
    for text in _texts(value):
        if len(text) <= limits.REPLACEMENT_CHARACTERS:
            continue
        count = text.count(_REPLACEMENT)
        if count > limits.REPLACEMENT_CHARACTERS and count > len(text) * _SHARE:
            raise InvalidInput(
                f"Invalid document '{id.text}': some text of length {len(text)} is classified as binary data as it"
                f" contains {count} Unicode replacement characters. (max-replacement-character-ratio={_SHARE:.0%},"
                f" max-replacement-characters={limits.REPLACEMENT_CHARACTERS})"
            )


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value:
            if isinstance(each, str):
                yield each


# Reports what is wrong with the scripts of a schema at its deployment.


def check_scripts(schema: Schema, components: Components = BUILT_IN) -> Iterator[Finding]:
    """Errors of fields whose scripts do not make a value of the field's type, and warnings of those that never will."""
    for script in compile_scripts(schema, components):
        if isinstance(script, LanguageError):
            yield Finding(script.bare_message, script.position, "ERROR")
        else:
            yield from (Finding(each.bare_message, each.position, "WARNING") for each in script.warnings)
