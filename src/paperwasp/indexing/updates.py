"""Turns updates that do not assign a whole field into updates of the fields that are made of that field alone.

    assign null, remove of all    the field is cleared
    add, remove of elements       so are the elements that the script makes of them, in a collection
    match, of an element          the same at the same place of an array; at the key that the script makes of a key
    increment, …                  is done as it is, to a number
    changes of cells, paths       are done as they are where the field is a copy; else the field stays as it is

Vespa: com.yahoo.vespa.indexinglanguage.FieldUpdateFieldValues
Differs: Vespa runs a script on an empty value to clear what it makes, and fails where that is none that it can convert.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from paperwasp.document.operations import Value
from paperwasp.document.types import ArrayType, WeightedSetType
from paperwasp.document.updates import Add, Assign, Calculate, FieldUpdate, Match, Take
from paperwasp.indexing.compiler import FieldScript
from paperwasp.indexing.values import is_number

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
