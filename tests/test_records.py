"""Records: the dataclasses of the standard library, made sooner. What the standard decorator makes is the oracle."""

from __future__ import annotations

import ast
import copy
import dataclasses
import pickle
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import partial
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.base import records
from paperwasp.base.records import dataclass, frozen

_SOURCES = Path(records.__file__).parent
_T = TypeVar("_T")
_FORMS: tuple[dict[str, bool], ...] = (
    {},
    {"eq": False},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True, "order": True},
    {"slots": True, "repr": False, "eq": False},
    {"frozen": True, "slots": True, "eq": False, "weakref_slot": True},
)


def _made(decorator: Callable[..., Any], form: dict[str, bool]) -> Any:
    @decorator(**form)
    class Base:
        a: int
        b: str = "b"
        known: ClassVar[int] = 3

    @decorator(**form)
    class Made(Base):
        """Has a field of each kind."""

        c: list[int] = field(default_factory=list)
        d: float = field(default=1.5, compare=False)
        e: int = field(default=0, kw_only=True)
        f: int = field(default=7, init=False)
        g: dict[str, int] = field(default_factory=dict, init=False, hash=False, compare=False)
        h: tuple[int, ...] = field(default=(), repr=False)

        def double(self) -> int:
            return 2 * self.a

    return Made


def _result(call: Callable[[], object]) -> object:
    """What the call returns, or the kind and the words of what it raises."""
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


def _facts(made: Any) -> list[object]:
    one, same, other = made(a=1), made(a=1, b="b", d=3.0), made(a=1, b="c", c=[4], e=2, h=(1,))
    pairs = [(x, y) for x in (one, same, other, 5) for y in (one, same, other)]
    return [
        [[getattr(x, f.name) for f in fields(made)] for x in (one, same, other)],
        [(f.name, f.init, f.repr, f.compare, f.hash, f.kw_only) for f in fields(made)],
        [x == y for x, y in pairs],
        [x != y for x, y in pairs],
        [_result(partial(comparison, x, y)) for x, y in pairs[:9] for comparison in (lt, le, gt, ge)],
        made.__doc__,
        made.__match_args__,
        asdict(other),
        one.double(),
        [repr(x) for x in (one, same, other)] if made.__repr__ is not object.__repr__ else None,
        _result(lambda: setattr(one, "a", 2)),
        _result(lambda: delattr(other, "b")),
        hasattr(one, "__dict__"),
        _result(lambda: type(hash(one)).__name__),
        _result(lambda: made()),
        _result(lambda: made(1, "b", [], 1.0, 2, 3, 4)),
        _result(lambda: made(a=1, z=2)),
        made.known,
    ]


@pytest.mark.parametrize("form", _FORMS, ids=str)
def test_a_record_is_what_the_standard_decorator_makes(form: dict[str, bool]) -> None:
    assert _facts(_made(dataclass, form)) == _facts(_made(dataclasses.dataclass, form))


@frozen
class _Point:
    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class _Pickled:
    x: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Tree:
    """Holds others of its kind."""

    parts: list[_Tree]


@given(st.integers(), st.lists(st.text()).map(tuple))
def test_records_are_equal_and_hashed_by_their_fields(x: int, names: tuple[str, ...]) -> None:
    one = _Pickled(x, names)
    assert one == _Pickled(x, (*names,)) != _Pickled(x + 1, names)
    assert hash(one) == hash(replace(_Pickled(0), x=x, names=names))
    assert pickle.loads(pickle.dumps(one)) == one == copy.copy(one) == copy.deepcopy(one)


def test_a_frozen_record_refuses_changes_and_its_plain_subclass_takes_its_own_attributes() -> None:
    class Plain(_Tree):
        pass

    plain = Plain([])
    plain.more = 3  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'parts'"):
        plain.parts = []  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'more'"):
        _Tree([]).more = 3  # type: ignore[attr-defined]


def test_a_record_that_holds_itself_can_be_shown() -> None:
    tree = _Tree([])
    tree.parts.append(tree)
    assert repr(tree) == "_Tree(parts=[...])"


def test_methods_of_the_class_come_first() -> None:
    @dataclass(frozen=True)
    class Own:
        x: int

        def __eq__(self, other: object) -> bool:
            return other == "own"

        def __hash__(self) -> int:
            return 12

        def __repr__(self) -> str:
            return "shown"

    assert (Own(1) == "own", hash(Own(1)), repr(Own(1))) == (True, 12, "shown")


def test_subclasses_may_call_the_first_init_of_their_base() -> None:
    @dataclass
    class Base:
        x: int
        y: int = field(init=False)

        def __post_init__(self) -> None:
            self.y = self.x + 1

    class Below(Base):
        def __init__(self) -> None:
            super().__init__(4)

    assert (Below().x, Below().y, Base(x=1).y) == (4, 5, 2)


def test_generic_records_and_protocols_are_taken() -> None:
    class Named(Protocol):
        @property
        def name(self) -> str: ...

    @dataclass(frozen=True, slots=True)
    class Box(Generic[_T]):
        value: _T
        name: str = "box"

    def name_of(named: Named) -> str:
        return named.name

    assert name_of(Box[int](3)) == "box"


def test_frozen_ones_are_compared_hashed_replaced_and_shown_by_their_fields() -> None:
    point = _Point(1, y=2)
    assert point == _Point(1, 2) != _Point(2, 2)
    assert {point, _Point(1, 2)} == {replace(_Point(1), y=2)}
    assert repr(point) == "_Point(x=1, y=2)"


def test_frozen_ones_have_no_attributes_but_their_fields() -> None:
    assert not hasattr(_Point(1), "__dict__")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        _Point()  # type: ignore[call-arg]


def test_an_init_is_compiled_once_and_by_the_first_object() -> None:
    before = _Count.__init__
    _Count(1)
    compiled = _Count.__init__
    _Count(2)
    assert before is not compiled is _Count.__init__


@dataclass
class _Count:
    x: int


def test_all_of_the_package_use_them() -> None:
    """A frozen class of the standard library and one of these cannot inherit from each other."""
    found = [
        str(path.relative_to(_SOURCES))
        for path in sorted(_SOURCES.rglob("*.py"))
        if path.name != "records.py" and "dataclasses" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if (isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and _names_it(node))
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "dataclasses.dataclass")
    ]
    assert found == []
    assert "paperwasp.base.records" in sys.modules


def _names_it(node: ast.ImportFrom) -> bool:
    return any(alias.name == "dataclass" for alias in node.names)
