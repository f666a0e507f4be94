"""Trees of records as messages: query items, grouping requests, updates.

A record is a node: the name of its class, and its declared fields that are not as they are by default. What it is made
of are nodes of their own, which follow it: a tree is a list, parents first, so that neither end goes down into it by
calls of calls. A class needs no more than its declared fields, with their types, to cross: `Trees` reads both.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from paperwasp.coordination.messages.values import plain
from paperwasp.errors import UnreadableMessage
from paperwasp.limits import messages as limits

_CHILD: Final = "child"
"""`{"child": 2}` in a field is the third of the nodes that the node is made of."""


class Node(msgspec.Struct, frozen=True, array_like=True):
    """One node of a tree. Those that it is made of come after it, each with all below it."""

    kind: str
    fields: dict[str, Any] = {}
    """The fields that are not as they are by default."""
    children: int = 0
    """How many nodes it is made of."""


Tree = tuple[Node, ...]
_Read = Callable[[Any, Sequence[Any]], Any]
"""(a field as it is in a node, the records that the node is made of) → the value. Errors: UnreadableMessage."""


class _Slot(NamedTuple):
    """A declared field of a class."""

    default: Any
    """`NODEFAULT`: it has none."""
    read: _Read


class Trees:
    """Trees of the records of some classes."""

    def __init__(self, classes: Callable[[], Iterable[type]]) -> None:
        """`classes` gives all there are, each with another name. It is asked when first a tree crosses, and again for
        a name that is not known."""
        self._classes = classes
        self._by_name: dict[str, type] = {}
        self._slots: dict[type, Mapping[str, _Slot]] = {}

    def to_tree(self, record: Any) -> Tree:
        """The tree of a record. Errors: TypeError for a class that is none of these."""
        tree: list[Node] = []
        left = [record]
        while left:
            children: list[Any] = []
            top = left.pop()
            tree.append(self._node(top, children))
            left += reversed(children)
        return tuple(tree)

    def from_tree(self, tree: Sequence[Node]) -> Any:
        """The record of a tree. Errors: UnreadableMessage."""
        if len(tree) > limits.TREE_NODES:
            raise UnreadableMessage(f"a tree of {len(tree)} nodes; at most {limits.TREE_NODES}")
        built: list[tuple[Any, int]] = []
        for node in reversed(tree):
            if not 0 <= node.children <= len(built):
                raise UnreadableMessage(f"'{node.kind}' is made of {node.children} nodes, which are not there")
            own = [built.pop() for _ in range(node.children)]
            depth = 1 + max((depth for _, depth in own), default=0)
            if depth > limits.TREE_DEPTH:
                raise UnreadableMessage(f"nodes within each other; at most {limits.TREE_DEPTH}")
            built.append((self._record(node, [record for record, _ in own]), depth))
        if len(built) != 1:
            raise UnreadableMessage(f"{len(built)} trees where there is to be one")
        return built[0][0]

    def _node(self, record: Any, children: list[Any]) -> Node:
        """The node of a record; what it is made of is added to the children."""
        kind = type(record)
        if self._class_of(kind.__name__) is not kind:
            raise TypeError(f"{kind.__name__} is no part of a message")
        said = {}
        for name, slot in self._slots_of(kind).items():
            value = getattr(record, name)
            if not _is_default(slot.default, value):
                said[name] = self._said(value, children)
        return Node(kind.__name__, said, len(children))

    def _said(self, value: Any, children: list[Any]) -> Any:
        """A value of a field as it is in a node."""
        if type(value) is tuple:
            members: tuple[Any, ...] = value
            return [self._said(each, children) for each in members]
        if isinstance(value, msgspec.Struct) and self._class_of(type(value).__name__) is type(value):
            children.append(value)
            return {_CHILD: len(children) - 1}
        return plain(value)

    def _record(self, node: Node, children: Sequence[Any]) -> Any:
        kind = self._class_of(node.kind)
        if kind is None:
            raise UnreadableMessage(f"a node of a message is of an unknown kind '{node.kind[:100]}'")
        try:
            slots = self._slots_of(kind)
            values = {name: slots[name].read(said, children) for name, said in node.fields.items()}
            return kind(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadableMessage(f"a node '{node.kind}' of a message cannot be read: {error}") from None

    def _class_of(self, name: str) -> type | None:
        if name not in self._by_name:
            self._by_name = {each.__name__: each for each in self._classes()}
        return self._by_name.get(name)

    def _slots_of(self, kind: type[msgspec.Struct]) -> Mapping[str, _Slot]:
        slots = self._slots.get(kind)
        if slots is None:
            hints = get_type_hints(kind)
            known = frozenset(self._by_name.values())
            slots = self._slots[kind] = {
                name: _Slot(default, _reader(hints[name], known)) for name, default in _defaults_of(kind)
            }
        return slots


def subclasses(base: type) -> Iterator[type]:
    """All classes below a class."""
    each: type
    for each in base.__subclasses__():
        yield each
        yield from subclasses(each)


def declared_in(module: types.ModuleType) -> list[type]:
    """The classes that a module declares."""
    return [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]


def _defaults_of(kind: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    """The fields of a class, each with its default: `NODEFAULT` where it has none, a factory where it is made."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    return zip(names, (msgspec.NODEFAULT,) * (len(names) - len(defaults)) + defaults, strict=True)


def _is_default(default: Any, value: Any) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and value == default and str(value) == str(default)  # 0.0 and -0.0 are equal


def _reader(hint: Any, known: frozenset[type]) -> _Read:
    """Return the reader of values that are declared so. Errors: TypeError for a type that no message has."""
    if hint is Any:
        return lambda said, _: said
    if hint is object:  # a value, or a record
        return _any_of([_child(object), _checked(lambda said: type(said) is not dict)])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _any_of([_reader(each, known) for each in arguments])
    if origin is Literal:
        return _checked(lambda said: said in arguments)
    if origin is tuple and arguments[-1:] == (...,):
        return _sequence(_reader(arguments[0], known))
    if origin is tuple:
        return _row([_reader(each, known) for each in arguments])
    if any(issubclass(each, hint) for each in known):
        return _child(hint)
    if hint is float:
        return _checked(lambda said: type(said) in (float, int))
    return _checked(lambda said: type(said) is hint)


def _checked(is_one: Callable[[Any], bool]) -> _Read:
    def read(said: Any, _: Sequence[Any]) -> Any:
        if not is_one(said):
            raise _no_value(said)
        return said

    return read


def _any_of(readers: Sequence[_Read]) -> _Read:
    def read(said: Any, children: Sequence[Any]) -> Any:
        for each in readers:
            try:
                return each(said, children)
            except UnreadableMessage:
                continue
        raise _no_value(said)

    return read


def _sequence(read_one: _Read) -> _Read:
    def read(said: Any, children: Sequence[Any]) -> Any:
        if type(said) is not list:
            raise _no_value(said)
        return tuple([read_one(each, children) for each in said])

    return read


def _row(readers: Sequence[_Read]) -> _Read:
    def read(said: Any, children: Sequence[Any]) -> Any:
        if type(said) is not list or len(said) != len(readers):
            raise _no_value(said)
        return tuple([read_one(each, children) for read_one, each in zip(readers, said, strict=True)])

    return read


def _child(kind: type) -> _Read:
    def read(said: Any, children: Sequence[Any]) -> Any:
        number = said.get(_CHILD) if type(said) is dict and len(said) == 1 else None
        if type(number) is not int or not 0 <= number < len(children) or not isinstance(children[number], kind):
            raise _no_value(said)
        return children[number]

    return read


def _no_value(said: Any) -> UnreadableMessage:
    return UnreadableMessage(f"{repr(said)[:100]} is no value of its field")
