"""docs/reference/search-parameters.md tells what becomes of every parameter, and the parser does that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp.container.search.parameters import PARAMETERS, full_name, is_full_name, set_parameter
from paperwasp.container.search.settings import SearchParameters
from paperwasp.errors import IllegalQuery, InvalidQuery
from tests.container.search.vespa_query_properties import OWN, names_of_vespa

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "search-parameters.md"
VALUES = (
    *("", "true", "false", "1", "2", "0.5", "-1", "x", "now-5", "and", "internal", "simple", "any", "weakAnd", "de"),
    *("json", "cbor", "long", "loose", "default", "no:such(value", '["x"]'),
)
"""Values, some of which say something to each of the parameters."""
READ_BEFORE_OTHERS = frozenset({"queryProfile"})
"""Read by `read_parameters` itself."""
STATES = ("executed", "no effect", "refused", "own")


def rows() -> Iterator[tuple[str, str]]:
    """(name or alias, what becomes of it) for each name in the tables."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 6 and cells[3] in STATES:
            for name in re.findall(r"`([^`]+)`", f"{cells[1]} {cells[2]}"):
                yield name, cells[3]


ROWS = dict(rows())


def outcomes(name: str) -> Iterator[str]:
    """What each of the values does: `changes` the parameters, `keeps` them, or `fails`; `refuses` what is not yet."""
    for value in VALUES:
        parameters = SearchParameters()
        try:
            set_parameter(parameters, name, value)
        except (IllegalQuery, InvalidQuery) as error:
            yield "refuses" if "not supported yet" in str(error) else "fails"
        else:
            yield "keeps" if parameters == SearchParameters() else "changes"


def is_known(name: str) -> bool:
    return is_full_name(full_name(name))


def test_every_row_has_one_outcome_for_its_name() -> None:
    names = [name for name, _ in rows()]
    assert len(names) == len(set(names)) > 150


@pytest.mark.parametrize(("name", "state"), ROWS.items(), ids=ROWS)
def test_row(name: str, state: str) -> None:
    found = set(outcomes(name))
    assert is_known(name) == (state != "own")
    if name in READ_BEFORE_OTHERS:
        return
    if state == "executed":
        assert "changes" in found
    elif state == "refused":
        assert "refuses" in found and "changes" not in found and "keeps" in found
    elif state == "own":
        assert found == {"keeps"}
    else:
        assert "keeps" in found and not found & {"changes", "refuses"}


@pytest.mark.parametrize("name", [name for names, *_ in PARAMETERS for name in names])
def test_every_parameter_has_a_row(name: str) -> None:
    assert name in ROWS


@pytest.mark.parametrize("name", ["model.x", "ranking.x", "presentation.x", "MODEL.x"])
def test_unknown_members_of_reserved_groups_are_refused(name: str) -> None:
    with pytest.raises(IllegalQuery, match=r"'x' is not a valid property in "):
        set_parameter(SearchParameters(), name, "1")


def test_a_name_of_the_application_s_own_is_kept() -> None:
    assert set(outcomes("my.own")) == {"keeps"}


@pytest.mark.parametrize("name", names_of_vespa())
def test_every_property_of_vespa_has_a_row(name: str) -> None:
    assert name in ROWS


def test_what_only_this_service_has_is_no_property_of_vespa() -> None:
    assert len(set(names_of_vespa())) == len(names_of_vespa()) > 150
    assert OWN.isdisjoint(names_of_vespa()) and ROWS.keys() >= OWN
