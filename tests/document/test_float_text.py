"""The texts of floating-point numbers. Authority: Double.toString and Float.toString of Java."""

from __future__ import annotations

import pytest

from paperwasp.document.numbers import double_text, single_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.38, "-0.38"), (0.001, "0.001"), (0.00012, "1.2E-4"), (1e-5, "1.0E-5"), (1e7, "1.0E7"),
        (9999999.0, "9999999.0"), (-12345678.5, "-1.23456785E7"), (1e300, "1.0E300"), (float("nan"), "NaN"),
        (-float("inf"), "-Infinity"),
    ],
)  # fmt: skip
def test_doubles_are_written_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text


def test_singles_have_fewer_digits() -> None:
    assert [single_text(0.1), single_text(16777216.0), double_text(0.1)] == ["0.1", "1.6777216E7", "0.1"]
    assert double_text(float(single_text(0.3))) == "0.3"
