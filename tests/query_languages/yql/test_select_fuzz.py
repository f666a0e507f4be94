"""No JSON, and no list in a parameter, makes the parsers raise anything but a PaperwaspError, or take long."""

from __future__ import annotations

import time
from contextlib import suppress

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.errors import LanguageError, PaperwaspError
from paperwasp.query_languages.yql import (
    UserText,
    complete,
    parse_filter,
    parse_recall,
    parse_select,
    parse_select_grouping,
    parse_yql,
)
from paperwasp.query_languages.yql.indexes import Indexes
from paperwasp.query_languages.yql.select_json import _OPERATORS
from paperwasp.search.operators.notation import CONDITIONS, LEAVES

NAMES = st.sampled_from(
    [
        *CONDITIONS,
        *LEAVES,
        *_OPERATORS,
        "children",
        "attributes",
        "query",
        "field",
        "value",
        "index",
        ">",
        "<=",
        "title",
    ]
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 2**40), st.floats(allow_nan=False), st.text(max_size=3), NAMES
)
JSON = st.recursive(
    VALUES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
SELECT = "select * from sources * where "


@settings(deadline=None, max_examples=500)
@given(st.one_of(JSON, st.dictionaries(NAMES, JSON, min_size=1, max_size=1)))
def test_select_parses_or_says_why(value: object) -> None:
    text = orjson.dumps(value).decode()
    with suppress(PaperwaspError):
        complete(parse_select(text).tree, UserText("a"))
    with suppress(PaperwaspError):
        parse_select_grouping(text)


@settings(deadline=None)
@given(st.text())
def test_select_takes_any_text(text: str) -> None:
    with suppress(PaperwaspError):
        parse_select(text)


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("{}[],:'\" a1-.")))
def test_lists_in_parameters_parse_or_say_why(text: str) -> None:
    for condition in ("wand(a, @list)", "a in (@list)", "a in (1, @list)"):
        with suppress(PaperwaspError):
            parse_yql(SELECT + condition, {"list": text})


@settings(deadline=None)
@given(st.text(st.sampled_from('+-()" a:[1;5]*!')))
def test_filters_parse_or_say_why(text: str) -> None:
    parse_filter(text, "a", Indexes("a"))
    with suppress(PaperwaspError):
        parse_recall(text, "a", Indexes("a"))


@pytest.mark.parametrize("name", ["and", "or", "and_not", "rank", "weakAnd"])
def test_deep_json_is_refused(name: str) -> None:
    with pytest.raises(LanguageError, match=r"nested deeper|recursion|depth"):
        parse_select(f'{{"{name}": [' * 900 + "true" + "]}" * 900)


@pytest.mark.parametrize("piece", [" ", "a", "'", "{", "[", "a:", "[1,", "a:1,", "[1,1],", "'a':1,"])
@pytest.mark.parametrize("start", ["", "{", "["])
def test_long_lists_take_linear_time(piece: str, start: str) -> None:
    started = time.process_time()
    for condition in ("wand(a, @list)", "a in (@list)"):
        with suppress(PaperwaspError):
            parse_yql(SELECT + condition, {"list": start + piece * 100_000})
    assert time.process_time() - started < 4
