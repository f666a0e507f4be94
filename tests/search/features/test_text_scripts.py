"""Golden scripts of the features of texts: a query, a field, and the values of features of them.

A line is `query | field | output:value …`. Terms of the query search the field `f`: `word`, `word!weight`,
`word%significance`, `0.3:word` with its connectedness to the term before, `word@label`, `two+words` for a phrase,
`g.word` for one in the field `g`. The elements of a field are parted by `;`, each may have a weight (`red apple =3`).
A value is a number or a fraction; one with four digits or more behind the point was published, and is right to half of
its last digit, all others to a millionth. `feature f(f)` says which feature, `field` whether it is of a single value,
an array or weighted, `set key value …` sets a rank property for the lines that follow, and `unset` all of them back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from paperwasp.document.types import INT, STRING, array_of, weighted_set_of
from paperwasp.schema.model import RankProfile
from paperwasp.search.features.setting import RankTerm
from tests.search.features.fake_block import compiled, fake_block, numbers, schema_of

SCRIPTS = Path(__file__).parent / "scripts"
TYPES = {"single": STRING, "array": array_of(STRING), "weighted": weighted_set_of(STRING)}
_TERM = re.compile(
    r"(?:(?P<connectedness>[\d.]+):)?(?:(?P<field>g)\.)?(?P<words>[a-z+]+)"
    r"(?:!(?P<weight>-?\d+))?(?:%(?P<significance>[\d.]+))?(?:@(?P<label>\w+))?"
)


@dataclass
class State:
    """What the lines before say."""

    feature: str = ""
    kind: str = "single"
    properties: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One line."""

    place: str
    feature: str
    kind: str
    properties: dict[str, tuple[str, ...]]
    query: str
    text: str
    expected: dict[str, str]


def cases() -> Iterator[Case]:
    for path in sorted(SCRIPTS.glob("*.txt")):
        state = State()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            word, _, rest = line.partition(" ")
            if word == "feature":
                state.feature = rest
            elif word == "field":
                state.kind = rest
            elif word == "set":
                key, *values = rest.split()
                state.properties[key] = tuple(values)
            elif word == "unset":
                state.properties = {}
            else:
                query, text, outputs = (part.strip() for part in line.split("|"))
                expected = dict(value.split(":") for value in outputs.split())
                place = f"{path.stem}:{number}"
                yield Case(place, state.feature, state.kind, dict(state.properties), query, text, expected)


def terms_of(query: str) -> list[tuple[str, RankTerm]]:
    found = []
    for text in query.split():
        match = _TERM.fullmatch(text)
        assert match, text
        words = match["words"].split("+")
        term = RankTerm(
            ((match["field"] or "f"),),
            weight=int(match["weight"] or 100),
            significance=float(match["significance"] or 0.1),
            connectivity=float(match["connectedness"] or 0.1),
            explicit_significance=match["significance"] is not None,
            label=match["label"],
            phrase_length=len(words),
        )
        found.append((" ".join(words), term))
    return found


def value_of(text: str, kind: str) -> object:
    if kind == "single":
        return text
    elements = [element.strip().partition("=") for element in text.split(";")]
    if kind == "array":
        return [words.strip() for words, _, _ in elements]
    return {words.strip(): int(weight or 1) for words, _, weight in elements}


def evaluate(case: Case, documents: list[dict[str, object]], names: list[str]) -> dict[str, list[float]]:
    profile = RankProfile("p", match_features=tuple(names), rank_properties=case.properties)
    schema = schema_of(["f", "g"], {"number": INT}, profile, index_types={"f": TYPES[case.kind]})
    properties = {key: values[-1] for key, values in case.properties.items()}
    block = fake_block(documents, terms_of(case.query), properties=properties)
    found = numbers(compiled(schema, profile).match_features, block)
    return {name: np.broadcast_to(column, len(documents)).tolist() for name, column in found.items()}


def tolerance(text: str) -> float:
    digits = len(text.partition(".")[2])
    return 0.5 * 10**-digits if digits >= 4 and "/" not in text else 1e-6


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.place)
def test_script(case: Case) -> None:
    names = {key: case.feature if key == "." else f"{case.feature}.{key}" for key in case.expected}
    document = {"f": value_of(case.text, case.kind), "g": "g h"}
    other = {"f": value_of("z", case.kind), "g": ""}
    found = evaluate(case, [other, document, other], list(names.values()))
    for key, text in case.expected.items():
        assert found[names[key]][1] == pytest.approx(float(Fraction(text)), abs=tolerance(text)), f"{case.place} {key}"
