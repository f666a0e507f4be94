"""What is accepted can be applied, now and by whoever applies the log again: nothing from outside stops a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.document import apply_updates
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.operations import Operation, Outcome, Put, Update
from paperwasp.document.types import INT, PREDICATE, RAW, STRING, array_of
from paperwasp.errors import InvalidInput
from paperwasp.schema.model import Field
from tests.content.nodes import ATTRIBUTE, doc_id, schema, start, started

LONGEST = 8


def things(*attributes: str, **types: Any) -> Any:
    kinds = {"n": INT, "note": STRING, "raw": RAW, "numbers": array_of(INT), "rule": PREDICATE} | types
    fields = (Field(name, kind, attribute=ATTRIBUTE if name in attributes else None) for name, kind in kinds.items())
    return {"music": schema("music", *fields)}


READER = DocumentReader(things()["music"].document)


def put(**fields: object) -> Operation:
    return Put(doc_id("a"), READER.read_put(fields))


def update(**fields: object) -> Operation:
    return Update(doc_id("a"), READER.read_update(fields), create=True)


@pytest.fixture
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of elements that a test can fill."""
    for module in ("content.layouts.layout", "storage.attributes.rows"):
        monkeypatch.setattr(f"paperwasp.{module}.LONGEST_ROW", LONGEST)


@pytest.mark.usefixtures("short_rows")
@pytest.mark.parametrize("field", ["raw", "numbers"])
@pytest.mark.parametrize("attributes", [(), ("n", "raw", "numbers")])
def test_rows_that_are_too_long_are_refused_before_the_log(
    tmp_path: Path, field: str, attributes: tuple[str, ...]
) -> None:
    """Wherever they are assigned; also where there is no column yet, since the next configuration may have one."""
    value: Any = "AAAAAAAAAAAA" if field == "raw" else [1] * (LONGEST + 1)
    with started(tmp_path, things(*attributes)) as node:
        asked = [put(**{field: value}), update(**{field: {"assign": value}})]
        asked.append(update(**{field: {"assign": value}, "n": {"increment": 1}}))
        assert [type(answer) for answer in node.outcomes(*asked)] == [InvalidInput] * 3
        assert node.outcomes(put(n=1)) == [Outcome(False)]


@pytest.mark.usefixtures("short_rows")
def test_what_another_type_of_the_field_has_no_room_for_is_unset(tmp_path: Path) -> None:
    """A text may be base64 of any length."""
    node = start(tmp_path, things(raw=STRING))
    node.outcomes(Put(doc_id("a"), {"raw": "AAAAAAAAAAAA", "n": 1}), Put(doc_id("b"), {"raw": "AAEC"}))
    node.node.configure(2, things("raw"))
    assert node.get("a") == {"n": 1} and node.get("b") == {"raw": "AAEC"}
    assert node.outcomes(update(note={"assign": "x"})) == [Outcome(True)]
    node.crash()
    with started(tmp_path, things("raw")) as again:
        assert again.get("a") == {"n": 1, "note": "x"}


@pytest.mark.parametrize("attributes", [(), ("numbers",)])
def test_an_array_is_copied_once_for_all_places_of_an_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attributes: tuple[str, ...]
) -> None:
    """In place as well: 10,000 copies of a long array would keep all others waiting."""
    copies: list[object] = []
    own = apply_updates._Change.own

    def counted(change: Any, container: Any) -> Any:
        found = own(change, container)
        copies.extend([found] if found is not container else [])
        return found

    monkeypatch.setattr(apply_updates._Change, "own", counted)
    with started(tmp_path, things(*attributes)) as node:
        places = {f"numbers[{place}]": {"assign": place} for place in range(50)}
        assert node.outcomes(put(numbers=[7] * 60), update(**places)) == [Outcome(False), Outcome(True)]
        assert node.get("a") == {"numbers": [*range(50), *[7] * 10]} and len(copies) == 1


def deeper_when_kept() -> str:
    """Each level of it needs parentheses of its own in the text that is kept."""
    text = "a in [b]"
    for _ in range(limits.PREDICATE_DEPTH):
        text = f"not ({text} and c in [d] or e in [f])"
    return text


def longer_when_kept() -> str:
    part = "a in[b]or "
    return part * ((limits.PREDICATE_CHARACTERS - 10) // len(part)) + "a in[b]"


@pytest.mark.parametrize("text", [deeper_when_kept(), longer_when_kept()], ids=["deeper", "longer"])
def test_a_predicate_whose_kept_text_could_not_be_read_again_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"a predicate has at most|nested deeper"):
        put(rule=text)


def test_the_deepest_predicate_is_read_again(tmp_path: Path) -> None:
    text = "a in [b] and c in [d]"
    for _ in range(limits.PREDICATE_DEPTH):
        text = f"({text}) and e in [f]" if len(text) % 2 else f"not ({text})"
    node = start(tmp_path, things())
    assert node.outcomes(put(rule=text), update(n={"assign": 1})) == [Outcome(False), Outcome(True)]
    expected = node.get("a")
    node.crash()
    with started(tmp_path, things()) as again:
        assert again.get("a") == expected and again.outcomes(update(n={"assign": 2})) == [Outcome(True)]
