"""Puts and updates on their way to the content cluster: the schema's scripts make fields of their values.

    put       all scripts run; what they make is added to the document's own fields
    update    scripts run on the values that are assigned; what changes a value in place, such as `add` or
              `increment`, changes the fields made of that one alone as well (`derived_updates`)

A field whose input is missing is not set, and by an update not changed.

Vespa: https://docs.vespa.ai/en/writing/indexing.html, com.yahoo.docprocs.indexing
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Value
from paperwasp.document.types import ArrayType, NumericType, WeightedSetType
from paperwasp.document.updates import Add, Assign, Calculate, FieldUpdate, Match, Take
from paperwasp.errors import InvalidInput, LanguageError, Overload, Timeout, Unavailable
from paperwasp.indexing.compiler import FieldScript, compile_scripts
from paperwasp.indexing.components import BUILT_IN, Components, TimeLeft, no_end
from paperwasp.indexing.scope import Run, is_number
from paperwasp.schema.model import Schema

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
        """The names of the fields that the scripts make."""
        self.is_slow = any(_calls_component(script) for script in self._scripts)
        """True where scripts call components of an application: they may take long, and are not for an event loop."""
        self._zeros = dict(_zeros(self._scripts))

    def derived(self, id: DocumentId, fields: Mapping[str, Value], time_left: TimeLeft = no_end) -> dict[str, Value]:
        """Return the fields that the scripts make of a whole document. `time_left`: that of the operation.

        Errors, as of all here: InvalidInput that names the field; Overload, Timeout, Unavailable of a component.
        """
        return {**self._zeros, **self._outputs(self._run(self._new_run(id, fields, time_left)))}

    def put(self, id: DocumentId, fields: Mapping[str, Value], time_left: TimeLeft = no_end) -> dict[str, Value]:
        """Return the document with what the scripts make of it. Errors: InvalidInput that names the field."""
        return {**fields, **self.derived(id, fields, time_left)}

    def update(
        self, id: DocumentId, updates: tuple[FieldUpdate, ...], time_left: TimeLeft = no_end
    ) -> tuple[FieldUpdate, ...]:
        """Return the updates, and behind them those of the fields made of what they change. Errors: InvalidInput."""
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
    return tree is not None and any(
        each.keyword in _SLOW or (each.keyword == "chunk" and each.arguments[0] not in BUILT_IN.chunkers)
        for each in tree.walk()
    )


def _problem(script: FieldScript, run: Run, reason: str) -> str:
    return f"In document '{run.id.text}': Could not index field '{script.field.name}': {reason}"


def _zeros(scripts: Iterable[FieldScript]) -> Iterator[tuple[str, Value]]:
    """The fields that rank profiles change, each with its zero: that is their value where nothing sets it."""
    for field in (script.field for script in scripts):
        if field.attribute is not None and field.attribute.mutable and not field.in_document:
            is_whole = isinstance(field.type, NumericType) and field.type.low is not None
            yield field.name, 0 if is_whole else 0.0


def processor_of(
    schema: Schema, components: Components = BUILT_IN, environment: Environment = SYSTEM
) -> Processor | None:
    """Make the processor of a schema that was checked; None: none of its scripts makes anything."""
    compiled = [script for script in compile_scripts(schema, components) if not isinstance(script, LanguageError)]
    if all(script.field.in_document for script in compiled):
        return None
    return Processor(compiled, environment)


# Updates of a part of a field

Convert = Callable[[Value], Value | None]
"""Applies a script to a value of its input; None: it makes no value."""


def derived_updates(update: FieldUpdate, script: FieldScript, convert: Convert) -> list[FieldUpdate]:
    """Turn an update that does not assign a whole field into updates of the field that the script makes of it alone.

        assign null, remove of all    clears the field
        add, remove of elements       adds, removes the elements that the script makes of them, in a collection
        match, of an element          the same at the same place of an array, at the key that the script makes of a key
        increment, …                  as it is, to a number
        changes of cells, paths       as they are where the field is a copy; else nothing

    Errors: ValueError for an element that cannot be converted.
    Vespa: com.yahoo.vespa.indexinglanguage.FieldUpdateFieldValues
    Differs: Vespa runs a script on an empty value to clear what it makes, and fails where it cannot convert that.
    """
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
