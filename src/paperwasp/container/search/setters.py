"""The setters of the parameters of a search, which the rows of `parameters.PARAMETERS` name.

Setters that have a value are partial functions, so that who describes a parameter reads from them what a value is
converted by, and what it sets: their arguments are, in this order, where the value goes, and the conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from paperwasp.base.records import replace
from paperwasp.container.search import values
from paperwasp.container.search.settings import RequestValues, SearchParameters

Setter = Callable[[Any, str], None]
"""Takes what is set, and the text of a value. Fails with ValueError, whose text says what the value must be."""
Convert = Callable[[str], Any]


def to(attribute: str, convert: Convert) -> Setter:
    """Sets an attribute of the parameters, or `group.attribute` of one of their groups."""
    group, _, name = attribute.rpartition(".")
    return partial(set_of_group, (group, name), convert) if group else partial(set_own, name, convert)


def set_own(name: str, convert: Convert, parameters: Any, value: str) -> None:
    """Sets an attribute of the parameters."""
    setattr(parameters, name, convert(value))


def set_of_group(place: tuple[str, str], convert: Convert, parameters: Any, value: str) -> None:
    """Sets an attribute of a group of the parameters."""
    setattr(getattr(parameters, place[0]), place[1], convert(value))


def number(attribute: str, convert: Convert) -> Setter:
    """As `to`, for a number: an empty text leaves the default."""
    group, _, name = attribute.rpartition(".")
    return partial(set_said_of_group, (group, name), convert) if group else partial(set_said, name, convert)


def set_said(name: str, convert: Convert, parameters: Any, value: str) -> None:
    """Sets an attribute of the parameters; an empty value sets nothing."""
    if value:
        setattr(parameters, name, convert(value))


def set_said_of_group(place: tuple[str, str], convert: Convert, parameters: Any, value: str) -> None:
    """Sets an attribute of a group of the parameters; an empty value sets nothing."""
    if value:
        setattr(getattr(parameters, place[0]), place[1], convert(value))


def into(attribute: str, key: str, convert: Convert) -> Setter:
    """Puts a value into a dictionary; the empty text puts nothing there."""
    return partial(put_into, (attribute, key), convert)


def put_into(place: tuple[str, str], convert: Convert, parameters: Any, value: str) -> None:
    """Puts a value into a dictionary of the parameters."""
    entries = getattr(parameters, place[0])
    entries.pop(place[1], None)
    if value:
        entries[place[1]] = convert(value)


def part(name: str, *words: str) -> Setter:
    """A part of the type of the user's text."""
    return partial(put_part, name, values.one_of(*words))


def put_part(name: str, convert: Convert, parameters: SearchParameters, value: str) -> None:
    """Puts a part of the type of the user's text."""
    parameters.text.parts[name] = convert(value)


def optional(convert: Convert) -> Convert:
    """A conversion with None for the empty text."""
    return partial(convert_said, convert)


def convert_said(convert: Convert, text: str) -> Any:
    """None for the empty text."""
    return convert(text) if text else None


def place(name: str) -> Setter:
    """A part of the position of a request."""
    return partial(put_place, name, str)


def put_place(name: str, convert: Convert, request: RequestValues, value: str) -> None:
    """Puts a part of the position of a request."""
    request.position = replace(request.position, **{name: convert(value)})


def checks(convert: Convert) -> Setter:
    """A parameter that must be well-formed, if it is not empty, and changes nothing here."""
    return partial(check, "", convert)


def check(_: str, convert: Convert, parameters: SearchParameters, value: str) -> None:
    """Converts a value, and forgets it."""
    if value:
        convert(value)


def only(*allowed: str) -> Setter:
    """A parameter that is not executed: accepted with the values that ask for nothing, refused with others."""
    return partial(check_empty, "", partial(refuse_all_but, allowed))


def flag_only(allowed: bool) -> Setter:
    """The same of a parameter that is true or false."""
    return partial(check_empty, "", partial(refuse_flag_but, allowed))


def check_empty(_: str, convert: Convert, parameters: SearchParameters, value: str) -> None:
    """Converts a value, empty or not, and forgets it."""
    convert(value)


def refuse_all_but(allowed: tuple[str, ...], value: str) -> None:
    """Errors: ValueError for any other word."""
    if value.lower() not in allowed:
        raise ValueError("this is not supported yet")


def refuse_flag_but(allowed: bool, value: str) -> None:
    """Errors: ValueError for the other one."""
    if values.boolean(value) != allowed:
        raise ValueError("this is not supported yet")


def depth(phase: str) -> Setter:
    """The depth of one profile."""
    return partial(put_depth, phase, values.integer)


def put_depth(phase: str, convert: Convert, parameters: SearchParameters, value: str) -> None:
    """Puts the depth of one profile; an empty value puts nothing."""
    if value:
        parameters.trace.profiling[phase] = convert(value)


def rank_property(name: str, convert: Callable[[str], object]) -> Setter:
    """Set a rank property of the content nodes; an empty text leaves the default."""
    return partial(put_property, name, convert)


def put_property(name: str, convert: Convert, parameters: SearchParameters, value: str) -> None:
    """Puts a rank property; an empty value puts nothing."""
    if value:
        parameters.rank_properties[name] = str(convert(value))
