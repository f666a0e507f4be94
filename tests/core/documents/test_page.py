"""The hits of a page rendered from rows, beside the plain twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.core.documents.test_row_files import array, file_of
from tests.oracles import page

_NAMES = ["a", "b", 'c"\\', "æ", "long name"]
_TEXTS = st.text(alphabet='ab\\"{}[],:\n\t\x07\x7f\u00e9\u4e16', max_size=8)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["", [], {}, [""], {"a": ""}, {"a": []}, -128, "NaN", [-128], {"a": "NaN"}])
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=5,
)
_DOCUMENTS = st.none() | st.tuples(_TEXTS, st.dictionaries(st.sampled_from(_NAMES), _VALUES, max_size=5))
_SCORES = st.floats() | st.sampled_from([0.0, -0.0, 1e16, 1e15, 123456.789, 5e-324, 1.7e308, 1e-5, 1e-7, 0.1])
_UNSET = st.lists(st.sampled_from([b"", b'""', b"-128", b'"NaN"']), min_size=5, max_size=5)
_FORMS = st.builds(
    lambda keys, unset, **others: page.PageForm(keys=keys, unset=unset[: len(keys)], **others),
    keys=st.lists(st.sampled_from(_NAMES), unique=True).map(lambda names: [orjson.dumps(n) + b":" for n in names]),
    unset=_UNSET,
    as_stored=st.booleans(),
    required=st.integers(0, 31),
    shows_empty=st.integers(0, 31),
    source=st.just(b',"source":"music"'),
    type=st.sampled_from([b"", b'"sddocname":"music"']),
    id_prefix=st.sampled_from([b"", b"index:music/0/"]),
)


def compiled(form: page.PageForm) -> _core.PageForm:
    return _core.PageForm(
        list(form.keys),
        form.as_stored,
        form.required,
        form.shows_empty,
        list(form.unset),
        form.source,
        form.type,
        form.id_prefix,
    )


@given(st.lists(_DOCUMENTS, min_size=1, max_size=6), _FORMS, st.integers(0, 3), st.data())
def test_hits_are_rendered_as_the_plain_twin_does(
    documents: list[tuple[str, dict[str, Any]] | None], form: page.PageForm, first: int, data: st.DataObject
) -> None:
    stored = [None if found is None else (found[0].encode(), orjson.dumps(found[1])) for found in documents]
    lids = data.draw(st.lists(st.integers(0, len(documents) + 1), max_size=8))
    relevances = orjson.dumps([data.draw(_SCORES) for _ in lids])
    changed = data.draw(st.lists(st.integers(0, 1), min_size=len(documents) - 1, max_size=len(documents) + 1))
    gids = [data.draw(st.binary(min_size=12, max_size=12)) for _ in lids]
    found = _core.page(
        _core.RowFiles([array(file_of(0, stored))]),
        np.array(lids, np.uint32),
        relevances,
        np.array(changed, np.uint8),
        first,
        np.frombuffer(b"".join(gids), np.uint8),
        compiled(form),
    )
    rows = {lid: row for lid, row in enumerate(stored) if row is not None}
    assert found == page.page(rows, lids, relevances, changed, first, gids, form)


_COLUMNS = st.none() | _VALUES


@given(st.lists(_SCORES, max_size=6), _FORMS.filter(lambda form: bool(form.id_prefix)), st.data())
def test_hits_of_values_are_rendered_as_the_plain_twin_does(
    scores: list[float], form: page.PageForm, data: st.DataObject
) -> None:
    values = [orjson.dumps([data.draw(_COLUMNS) for _ in scores]) for _ in form.keys]
    gids = [data.draw(st.binary(min_size=12, max_size=12)) for _ in scores]
    given_gids = np.frombuffer(b"".join(gids), np.uint8)
    found = _core.value_page(values, orjson.dumps(scores), given_gids, compiled(form))
    assert found == page.value_page(values, orjson.dumps(scores), gids, form)


_VALUE = page.PageForm([b'"a":', b'"b":'], False, 0, 2, [b"", b""], b',"source":"c"', b'"sddocname":"t"', b"index:c/0/")


def test_hits_of_values_by_hand() -> None:
    values = [b'[1,"",null]', b'[[],"x]",{"y":[2,3]}]']
    gids = np.arange(36, dtype=np.uint8)
    assert _core.value_page(values, b"[2.5,null,1.0]", gids, compiled(_VALUE)) == [
        b'{"id":"index:c/0/000102030405060708090a0b","relevance":2.5,"source":"c","fields":'
        b'{"sddocname":"t","a":1,"b":[]}}',
        None,
        b'{"id":"index:c/0/18191a1b1c1d1e1f20212223","relevance":1.0,"source":"c","fields":'
        b'{"sddocname":"t","b":{"y":[2,3]}}}',
    ]


@pytest.mark.parametrize(
    ("values", "relevances", "gid_bytes", "problem"),
    [
        ([b"[1]"], b"[1.0]", 12, "values for each key"),
        ([b"[1]", b"[1,2]"], b"[1.0]", 12, "value for each hit"),
        ([b"[1]", b"[]"], b"[1.0]", 12, "value for each hit"),
        ([b"[1]", b"[1"], b"[1.0]", 12, "no JSON array"),
        ([b"[1]", b"[1]]"], b"[1.0]", 12, "no JSON array"),
        ([b"[1]", b"[,]"], b"[1.0]", 12, "no JSON array"),
        ([b"[1]", b"[1,]"], b"[1.0]", 12, "no JSON array"),
        ([b"[1]", b'["]'], b"[1.0]", 12, "no JSON array"),
        ([b"[1]", b""], b"[1.0]", 12, "no JSON array"),
        ([b"[1]", [1]], b"[1.0]", 12, "no JSON array"),
        ([b"[1]", b"[1]"], b"[1.0,2.0]", 12, "relevance"),
        ([b"[1]", b"[1]"], b"[1.0]", 11, "gid"),
    ],
)
def test_values_of_other_hits_are_refused(values: list[Any], relevances: bytes, gid_bytes: int, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        _core.value_page(values, relevances, np.zeros(gid_bytes, np.uint8), compiled(_VALUE))


def test_values_need_the_gids_of_their_hits() -> None:
    form = page.PageForm([b'"a":'], False, 0, 0, [b""], b"", b"", b"")
    with pytest.raises(ValueError, match="gid"):
        _core.value_page([b"[1]"], b"[1.0]", np.zeros(12, np.uint8), compiled(form))


_PLAIN = page.PageForm([b'"a":'], True, 0, 0, [b""], b',"source":"c"', b'"sddocname":"t"', b"")


def one_hit(row: tuple[bytes, bytes], form: page.PageForm) -> bytes | None:
    rows = _core.RowFiles([array(file_of(0, [row]))])
    no_gids = np.zeros(12, np.uint8)
    return _core.page(rows, np.zeros(1, np.uint32), b"[0.5]", np.zeros(1, np.uint8), 0, no_gids, compiled(form))[0]


def test_a_hit_by_hand() -> None:
    assert one_hit((b'id:n:t::"\x01', b'{"a":1,"b":[]}'), _PLAIN) == (
        b'{"id":"id:n:t::\\"\\u0001","relevance":0.5,"source":"c",'
        b'"fields":{"sddocname":"t","documentid":"id:n:t::\\"\\u0001","a":1}}'
    )


def test_a_value_that_stands_for_none_is_left_out() -> None:
    """Vespa: attributedfw.cpp (`isDefaultValue`)."""
    form = page.PageForm([b'"a":', b'"b":'], True, 0, 0, [b"-128", b""], b',"source":"c"', b"", b"index:c/0/")
    shown = b'{"id":"index:c/0/000000000000000000000000","relevance":0.5,"source":"c"%b}'
    for stored, fields in ((b'{"a":-128,"b":-128}', b',"fields":{"b":-128}'), (b'{"a":-128}', b"")):
        assert one_hit((b"i", stored), form) == shown % fields


@pytest.mark.parametrize("stored", [b"{", b"[]", b'{"a":""', b'{"a":"","b"}', b"x"])
def test_what_is_no_object_is_left_to_others(stored: bytes) -> None:
    """What is shown whole is looked through only where it may have empty values."""
    picked = page.PageForm([b'"a":'], False, 0, 0, [b""], b"", b"", b"")
    assert one_hit((b"i", stored), _PLAIN) is None and one_hit((b"i", stored), picked) is None


@pytest.mark.parametrize("relevances", [b"", b"0.5", b"[]", b"[1.0,2.0]"])
def test_relevances_of_other_hits_are_refused(relevances: bytes) -> None:
    rows, nothing = _core.RowFiles([array(file_of(0, [None]))]), np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match=r"relevance|numbers"):
        _core.page(rows, np.zeros(1, np.uint32), relevances, nothing, 0, nothing, compiled(_PLAIN))


def test_gids_of_other_hits_are_refused() -> None:
    rows, nothing = _core.RowFiles([array(file_of(0, [None]))]), np.zeros(11, np.uint8)
    form = page.PageForm([], True, 0, 0, [], b"", b"", b"index:c/0/")
    with pytest.raises(ValueError, match="gid"):
        _core.page(rows, np.zeros(1, np.uint32), b"[1.0]", nothing, 0, nothing, compiled(form))


def test_a_value_for_each_key_is_needed() -> None:
    with pytest.raises(ValueError, match="for each key"):
        _core.PageForm([b'"a":'], True, 0, 0, [], b"", b"", b"")


def test_too_many_members_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 64"):
        _core.PageForm([b'"a":'] * 65, True, 0, 0, [b""] * 65, b"", b"", b"")
