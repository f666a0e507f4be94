"""Errors as messages: by code, with their message and the place that they name."""

from __future__ import annotations

from inspect import getattr_static
from typing import Final, NamedTuple

from paperwasp import errors
from paperwasp.coordination.messages.message import Message
from paperwasp.errors import LanguageError, PaperwaspError, Position, UnreadableMessage, failure

_CONSTRUCTORS: Final = (vars(PaperwaspError)["__init__"], vars(LanguageError)["__init__"])
_PLAIN: Final[dict[str, type[PaperwaspError]]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, PaperwaspError) and getattr_static(kind, "__init__") in _CONSTRUCTORS
}
"""The classes of the tree by name, whose errors are made of a message, or of a message and a position."""


class Place(NamedTuple):
    """A place in a text."""

    source: str
    line: int
    column: int


class Refused(Message, frozen=True):
    """The answer to a request that failed."""

    code: str
    """The name of the error's class in the tree of `paperwasp.errors`.

    In place of a class that is not there, or that takes more than a message, it names the nearest base class that does.
    """
    message: str
    position: Place | None = None
    """Of a LanguageError; its message is without it."""


def refused(error: Exception) -> Refused:
    """The message of an error. One that nobody has foreseen becomes the error that clients are shown."""
    known = error if isinstance(error, PaperwaspError) else failure(error)
    code = next(each.__name__ for each in type(known).__mro__ if _PLAIN.get(each.__name__) is each)
    if not isinstance(known, LanguageError):
        return Refused(code, _text(known.message))
    position = known.position
    place = None if position is None else Place(_text(position.source), position.line, position.column)
    return Refused(code, _text(known.bare_message), place)


def error_of(message: Refused) -> PaperwaspError:
    """The error that a message says. Errors: UnreadableMessage for a code that is not in the tree."""
    kind = _PLAIN.get(message.code)
    if kind is None:
        raise UnreadableMessage(f"an answer has the unknown code '{message.code[:100]}'")
    if issubclass(kind, LanguageError):
        return kind(message.message, None if message.position is None else Position(*message.position))
    return kind(message.message)


def _text(text: str) -> str:
    """The text with what stands for half of a surrogate pair, which no message can have."""
    return text.encode(errors="backslashreplace").decode()
