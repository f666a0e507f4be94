"""validation-overrides.xml: what it allows, until when, and what is told of one that is wrong."""

from __future__ import annotations

import os
import time
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.application.changes.overrides import ValidationOverrides, parse_overrides
from paperwasp.application.changes.validations import VALIDATIONS

TODAY = date(2026, 1, 15)
EXAMPLES = int(os.environ.get("PAPERWASP_FUZZ", "2000"))


def parsed(*allows: str, now: date | None = TODAY) -> tuple[ValidationOverrides, list[str]]:
    content = "\n".join(["<validation-overrides>", *allows, "</validation-overrides>"])
    overrides, findings = parse_overrides(content.encode(), now=now)
    return overrides, [f"{finding.level} {finding}" for finding in findings]


def until(day: date, validation_id: str = "field-type-change", more: str = "") -> str:
    return f"<allow until='{day}'{more}>{validation_id}</allow>"


def test_an_override_holds_up_to_its_day() -> None:
    overrides, told = parsed(until(TODAY), until(TODAY + timedelta(3), " indexing-change ", " comment='why'"))
    assert told == []
    assert overrides.allows("field-type-change", TODAY)
    assert not overrides.allows("field-type-change", TODAY + timedelta(1))
    assert overrides.allows("indexing-change", TODAY + timedelta(1))
    assert not overrides.allows("schema-removal", TODAY)
    assert [allow.comment for allow in overrides.allowed] == ["", "why"]


def test_an_older_name_of_an_id_counts() -> None:
    overrides, told = parsed(until(TODAY, "content-type-removal"))
    assert told == []
    assert overrides.allows("schema-removal", TODAY)


def test_days_that_are_over_or_too_far_ahead_are_told() -> None:
    far = TODAY + timedelta(limits.OVERRIDE_DAYS + 1)
    overrides, told = parsed(until(TODAY - timedelta(1)), until(far), until(far - timedelta(1)))
    place = "validation-overrides.xml, line"
    assert told == [
        f"INFO {place} 2, column 1: allow 'field-type-change' until 2026-01-14 has no effect: that day is over",
        f"ERROR {place} 3, column 1: allow 'field-type-change' until 2026-02-15 is too far in the future: "
        "Max 30 days is allowed",
    ]
    assert overrides.allows("field-type-change", TODAY)
    assert parsed(until(far), now=None)[1] == []


@pytest.mark.parametrize(
    ("allow", "told"),
    [
        ("<allow>indexing-change</allow>", "ERROR {}: element 'allow' missing required attribute 'until'"),
        ("<allow until='20260115'>indexing-change</allow>", "ERROR {}: '20260115' in 'until' is no date like"),
        ("<allow until='2026-02-30'>indexing-change</allow>", "ERROR {}: '2026-02-30' in 'until' is no date like"),
        ("<allow until='\u0662\u0660\u0662\u0666-01-15'>indexing-change</allow>", "is no date like"),
        (
            "<allow untill='2026-01-15'>indexing-change</allow>",
            "ERROR {}: attribute 'untill' not allowed here, in 'allow'; did you mean 'until'?",
        ),
        (until(TODAY, "index-change"), "WARNING {}: unknown validation id 'index-change' allows nothing; did you mean"),
        (until(TODAY, ""), "WARNING {}: unknown validation id '' allows nothing"),
        ("<deny/>", "ERROR {}: element 'deny' not allowed here; expected 'allow'"),
    ],
)
def test_what_is_wrong_allows_nothing(allow: str, told: str) -> None:
    overrides, lines = parsed(allow)
    assert lines[0].startswith(told.format("validation-overrides.xml, line 2, column 1")) or told in lines[0]
    assert not any(overrides.allows(validation_id, TODAY) for validation_id in VALIDATIONS)


@pytest.mark.parametrize("content", [b"", b"<", b"<overrides/>", b"<!DOCTYPE a><validation-overrides/>", b"\xff"])
def test_no_such_file_is_an_error(content: bytes) -> None:
    overrides, (finding,) = parse_overrides(content)
    assert finding.level == "ERROR"
    assert finding.position is not None
    assert overrides == ValidationOverrides()


def test_an_empty_file_is_what_pyvespa_writes() -> None:
    assert parse_overrides(b"<validation-overrides></validation-overrides>") == (ValidationOverrides(), ())


def test_very_many_wrong_words_take_little_time_and_text() -> None:
    allows = [until(TODAY, f"indexing-chance-{number}") for number in range(limits.XML_BYTES // 100)]
    content = f"<validation-overrides>{''.join(allows)}</validation-overrides>".encode()
    started = time.process_time()
    _, findings = parse_overrides(content)
    _, (long, *_) = parse_overrides(
        f"<validation-overrides>{until(TODAY, 'x' * 10**6)}</validation-overrides>".encode()
    )
    assert time.process_time() - started < 10
    assert len(long.message) < 200
    assert findings


PIECES = st.sampled_from(
    [
        "<validation-overrides>", "</validation-overrides>", "<allow", " until='2026-01-15'", " until='2026-99-99'",
        " comment='é'", ">", "/>", "</allow>", "indexing-change", "&amp;", "&x;", "<!--", "-->", "<![CDATA[", "]]>",
        "<?xml version='1.0'?>", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "\x00", "\n", "<a:b xmlns:a='c'/>",
    ]
)  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(PIECES, max_size=20).map("".join) | st.text(max_size=200) | st.binary(max_size=200))
def test_no_input_does_harm(content: str | bytes) -> None:
    encoded = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    overrides, findings = parse_overrides(encoded, now=TODAY)
    assert all(allow.validation_id in VALIDATIONS for allow in overrides.allowed)
    assert all(str(finding) for finding in findings)
