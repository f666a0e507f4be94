"""Dates of other forms than ISO 8601: what a form reads, what it refuses, and which forms are none."""

from __future__ import annotations

import pytest

from paperwasp.client.sources.values import converter
from paperwasp.errors import InvalidInput

DAY = 1751673600
"""The fifth of July 2025, in seconds since 1970."""


@pytest.mark.parametrize(
    ("form", "text", "seconds"),
    [
        ("DD.MM.YYYY", "05.07.2025", DAY),
        ("DD.MM.YYYY", " 5.7.2025 ", DAY),
        ("DD.MM.YYYY", "05.07.2025 12:00", DAY + 43_200),
        ("DD.MM.YYYY", "05.07.2025, 00:01:02.5", DAY + 62),
        ("MM/DD/YYYY", "7/5/2025 12:30 AM", DAY + 1800),
        ("MM/DD/YYYY", "7/5/2025 12:30 pm", DAY + 45_000),
        ("YYYY/MM/DD", "2025/07/05T01:00", DAY + 3600),
        ("DD Mon YYYY", "5 july 2025", DAY),
        ("Mon DD, YYYY", "Jul. 5, 2025", DAY),
        ("DD-Mon-YYYY", "05-JUL-2025", DAY),
        ("YYYYMMDD", "20250705", DAY),
    ],
)
def test_dates(form: str, text: str, seconds: int) -> None:
    assert converter(f"timestamp:{form}", ";", "s")(text) == seconds


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("DD.MM.YYYY", "31.02.2025"),
        ("DD.MM.YYYY", "05.07.25"),
        ("DD.MM.YYYY", "05/07/2025"),
        ("DD.MM.YYYY", "05.07.2025 24:00"),
        ("DD.MM.YYYY", "05.07.2025 13:00 PM"),
        ("DD Mon YYYY", "5 Juli 2025"),
        ("DD.MM.YYYY", ""),
    ],
)
def test_texts_that_are_no_dates_of_a_form(form: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^a date of the form {form}$"):
        converter(f"timestamp:{form}", ";", "s")(text)


@pytest.mark.parametrize("form", ["", "DD.MM", "DD.MM.YY", "DD.MM.Mon.YYYY", "DD.DD.YYYY"])
def test_texts_that_are_no_forms(form: str) -> None:
    with pytest.raises(InvalidInput, match=r"--field-type: '.*' has to say where day"):
        converter(f"timestamp:{form}", ";", "s")
