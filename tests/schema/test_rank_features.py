"""Lists of rank features."""

from __future__ import annotations

import pytest

from paperwasp.schema.rank_settings import split_features


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("", ()),
        (" bm25(title)\n\tnow ", ("bm25(title)", "now")),
        ("a(b, c) d", ("a(b,c)", "d")),
        ("fieldMatch (title) . completeness x", ("fieldMatch(title).completeness", "x")),
        ('f("a b") g', ('f("a b")', "g")),
        (r'f("a\" b") g', (r'f("a\" b")', "g")),
        ("f(g(h( 1 )))", ("f(g(h(1)))",)),
    ],
)
def test_features_are_separated_by_white_space(text: str, features: tuple[str, ...]) -> None:
    assert split_features(text) == features


@pytest.mark.parametrize("text", ["a, b", "f(a", "f)", 'f("a'])
def test_what_is_no_list_of_features(text: str) -> None:
    with pytest.raises(ValueError):
        split_features(text)


def test_a_long_feature_takes_no_longer_than_many_short_ones() -> None:
    assert split_features("f" * 2_000_000) == ("f" * 2_000_000,)
