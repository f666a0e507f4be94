"""The table of docs/reference/rank-properties.md beside what the code reads.

Every rank property that a feature reads when it is compiled, or of a query, is a row of the table that says so, and
every such row is read. The rows of `vespa.…` are beside the parameters that they stand for, and what deployments say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from paperwasp.base.records import replace
from paperwasp.container.search.parameters import PROPERTY_PARAMETERS, set_parameter
from paperwasp.container.search.settings import SearchParameters
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.errors import PaperwaspError
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema.pending import pending
from paperwasp.search import bind as bind_module
from paperwasp.search.features.catalog import Catalog, default_rank_features
from paperwasp.search.features.family import RankSetup, families
from paperwasp.search.features.setting import QuerySetting
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import started
from tests.search.queries import query_of
from tests.search.random_profiles import ARGUMENTS, schema_with

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "rank-properties.md"
COMPILED, OF_QUERIES, NAMED = 1, 2, 3
"""Tables of the page, by number."""
ALSO_ITERATED = {"elementSimilarity(<field>).output.<name>"}
"""Found by going over all names of a profile."""
BY_SCALE = "closeness(<field>).halfResponse"
"""Unless it is set, the scale has a default of its own, of which this follows."""
FIELD_OF = {"attributeMatch": "small", "closeness": "place", "freshness": "big"}
VALUES = {"attribute": "small", "strategy": "strict", "enable": "false", "order": "true", "coverage": "0.5", "": "0.25"}
VALUES = {"size": "7", "hits": "7", "groups": "7", **VALUES}
"""What is set, by how a name ends."""


class Recorder(dict[str, Any]):
    """Properties, none of which is set, that note which are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return default


def rows_of(table: int) -> dict[str, str]:
    """property → the cell behind it."""
    text = PAGE.read_text().split("\n## ")[table].split("\n\nBy their own names")[0]
    rows = re.findall(r"^\| `([^`]+)` \|([^|]*)\|", text, re.MULTILINE)
    assert len(rows) > 5 and len(dict(rows)) == len(rows)
    return {name: cell.strip(" `") for name, cell in rows}


def read_when_compiled() -> set[str]:
    """What the features of all families read of a profile, with `<field>` for names of fields."""
    schema, recorder = schema_with([]), Recorder()
    setup = RankSetup(schema, replace(schema.rank_profiles["base"], rank_properties=recorder))
    catalog = Catalog(setup, {})
    for name, arguments, output in some_features():
        with suppress(PaperwaspError, KeyError):
            catalog.bind(name, arguments, output)
    catalog.each(("terms", "N", "term(N).weight", "true", "sum"))
    default_rank_features(setup)
    fields = "|".join(sorted(schema.fields, key=len, reverse=True))
    found = {re.sub(rf"(?<![\w<])({fields})(?![\w(])", "<field>", key) for key in recorder.read}
    found = {re.sub(r"^(random|randomNormal|randomNormalStable)(\(.*\))?\.seed$", "random.seed", key) for key in found}
    return {key.replace(",x,float)", ",<dimension>,<cells>)") for key in found}


def some_features() -> Iterator[tuple[str, tuple[str, ...], str]]:
    yield "elementwise", ("bm25(title)", "x", "float"), "score"
    for name, family in families().items():
        for count in range(len(family.parameters) - family.optional, len(family.parameters) + 1):
            kinds = (ARGUMENTS[kind] for kind in family.parameters[:count])
            for arguments in islice(product(*kinds), 400):
                yield from ((name, arguments, output) for output in family.outputs[:3])


def test_all_that_is_read_when_a_profile_is_compiled_is_in_the_table() -> None:
    assert read_when_compiled() | ALSO_ITERATED == rows_of(COMPILED).keys()


def test_defaults_of_numbers_are_as_the_table_says(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, float] = {}

    def number(setup: RankSetup, default: float, *keys: str) -> float:
        found.update(dict.fromkeys(keys, default))
        return default

    monkeypatch.setattr(RankSetup, "number", number)
    monkeypatch.setattr(RankSetup, "whole", lambda setup, default, most, *keys: int(number(setup, default, *keys)))
    assert read_when_compiled()
    cells = {name: cell.split(";")[0] for name, cell in rows_of(COMPILED).items() if name != BY_SCALE}
    numbers = {name: float(cell) for name, cell in cells.items() if re.fullmatch(r"[0-9.]+", cell)}
    assert len(numbers) > 30
    for name, value in numbers.items():
        assert found[name.replace("<field>", FIELD_OF.get(name.split("(")[0], "title"))] == pytest.approx(value), name


def test_all_that_is_read_of_a_query_is_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = (
        *("dotProduct(tags,v)", "euclideanDistance(counts,v)", "distanceToPath(place)", "fieldMatch(title)"),
        *("random.match", "now", "query(x)", "term(0).significance"),
    )
    schema = schema_with([f"rank-profile asked inherits base {{ match-features {{ {' '.join(features)} }} }}"])
    recorder = Recorder()
    monkeypatch.setattr(bind_module, "QuerySetting", lambda *given, **named: setting_of(recorder, *given, **named))
    with started(tmp_path, {"s": schema}) as node:
        fields = read_fields(
            schema.document, {"title": "a", "tags": {"a": 1}, "counts": [1], "place": {"lat": 1, "lng": 1}}
        )
        node.apply(Put(DocumentId.parse("id:n:s::1"), fields))
        tree = parse_yql('select * from s where title contains "a"').tree
        assert search(node.node.reader.view(), query_of(tree, ("s",), "asked"), ServedSchemas()).total_count == 1
    named = {re.sub(r"\(\w+\)", "(<field>)", re.sub(r"\.v$", ".<name>", key)) for key in recorder.read}
    by_other_code = {"query(<name>)", "<name>", "$<name>", "vespa.now", "vespa.term.<number>.significance"}
    assert named | by_other_code == rows_of(OF_QUERIES).keys()


def setting_of(recorder: Recorder, *given: Any, **named: Any) -> QuerySetting:
    space, operator, terms, inputs, _, now = given
    return QuerySetting(space, operator, terms, inputs, recorder, now, **named)


@pytest.mark.parametrize(("name", "parameter"), rows_of(NAMED).items())
def test_a_property_stands_for_its_parameter(name: str, parameter: str) -> None:
    assert PROPERTY_PARAMETERS[name] == parameter
    value = next(text for ending, text in VALUES.items() if name.endswith(ending))
    by_property, by_parameter = SearchParameters(), SearchParameters()
    set_parameter(by_property, f"rankproperty.{name}", value)
    set_parameter(by_parameter, parameter, value)
    assert by_property.rank_properties.pop(name) == value
    assert by_property == by_parameter != SearchParameters()


def test_all_properties_of_parameters_are_in_the_table() -> None:
    assert PROPERTY_PARAMETERS.keys() == rows_of(NAMED).keys()


def test_deployments_name_reserved_properties_of_profiles() -> None:
    lines = "rank-properties { vespa.matching.termwise_limit: 0.1\n bm25(title).k1: 1 }"
    schema = schema_with([f"rank-profile one inherits base {{ {lines} }}", "rank-profile two inherits one {}"])
    told = [finding.message for finding in pending(schema) if "rank property" in finding.message]
    [message] = told
    assert message.startswith(
        "rank-profile one: rank property vespa.matching.termwise_limit is accepted without effect"
    )
