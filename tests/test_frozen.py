"""Classes whose objects only the type checker keeps from being changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paperwasp.frozen import frozen


@frozen
class _Point:
    x: int
    y: int = 0


def test_they_are_compared_hashed_replaced_and_shown_by_their_fields() -> None:
    point = _Point(1, y=2)
    assert point == _Point(1, 2) != _Point(2, 2)
    assert {point, _Point(1, 2)} == {replace(_Point(1), y=2)}
    assert repr(point) == "_Point(x=1, y=2)"


def test_they_have_no_attributes_but_their_fields() -> None:
    assert not hasattr(_Point(1), "__dict__")
    with pytest.raises(TypeError):
        _Point()  # type: ignore[call-arg]
