"""Marking and teasers by the kernel are what the Highlighter makes, text by text."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.content.views.view import View
from paperwasp.core import _core
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.schema import parse_schemas
from paperwasp.schema.teaser_settings import HI_TAGS, NO_TAGS, TeaserSettings
from paperwasp.search.operators.boolean import OrItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.text import QueryPart, QueryWord
from paperwasp.search.operators.word import WordItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.show import summary
from paperwasp.search.show.marking import Highlighter, Marking, Style
from paperwasp.text.linguistics import TextProfile, index_terms, profile_of
from paperwasp.text.linguistics.query import word_forms
from tests.content.nodes import started
from tests.search.queries import query_of

PROFILES = [
    profile_of("best", True, None),
    profile_of("best", True, None, snowball_english=True),
    profile_of("multiple", True, None),
    profile_of("none", True, None),
    profile_of("none", False, None, cased=True),
    profile_of("multiple", False, None, cased=True, max_token_length=4),
    profile_of("best", True, None, max_length=3),
]
LANGUAGES = ["", "en", "de", "id", "ga", "ru", "xx"]
WORDS = ["cat", "cats", "Cats", "conducting", "conductors", "the", "und", "der", "berjalan", "jalan", "\uff21\uff42"]
WORDS += [
    "\ufb01nds",
    "É",
    "étude",
    "Straße",
    "ΣΑΣ",
    "бегал",
    "字字",
    "a\u0301b",
    "x" * 70,
    "٣٤",
    "🐈",
    "İ",
    "ǅ",
    "4th",
]
WORDS += ["", "\u20dd", "\u212a"]
texts = st.lists(
    st.sampled_from(WORDS) | st.text(max_size=5) | st.text(st.sampled_from("cCaAtTsS\"\\\n\x1f<&'é.-"), max_size=8),
    max_size=40,
).flatmap(lambda words: st.sampled_from([" ", "-", "\n", ", "]).map(lambda between: between.join(words)))


@st.composite
def queries(draw: st.DrawFn, profile: TextProfile, language: str) -> list[QueryPart]:
    """Words, phrases, prefixes and alternatives, of which some are likely in the texts."""

    def word() -> QueryWord:
        text = draw(st.sampled_from(WORDS) | st.text("catsCATé", min_size=1, max_size=4))
        forms = [form for forms in index_terms(profile, text, language or "en") for form in forms]
        return QueryWord(frozenset(forms or [text or "a"]), prefix=draw(st.booleans()) and draw(st.booleans()))

    def part() -> QueryPart:
        ways = draw(st.integers(1, 2))
        lengths = [draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in range(ways)]
        return tuple(tuple(word() for _ in range(length)) for length in lengths)

    found = [part() for _ in range(draw(st.integers(1, 4)))]
    return [*found, *found[: draw(st.integers(0, 1))]]


@st.composite
def cases(draw: st.DrawFn) -> tuple[TextProfile, str, list[QueryPart], TeaserSettings]:
    profile, language = draw(st.sampled_from(PROFILES)), draw(st.sampled_from(LANGUAGES))
    settings = TeaserSettings(stem_min_length=draw(st.integers(0, 6)), stem_max_extend=draw(st.integers(0, 4)))
    return profile, language, draw(queries(profile, language)), settings


@given(cases(), st.lists(texts, max_size=3))
def test_the_same_as_the_highlighter(
    case: tuple[TextProfile, str, list[QueryPart], TeaserSettings], several: list[str]
) -> None:
    profile, language, parts, settings = case
    general = Highlighter(parts, profile, settings=settings)
    marking = Marking(parts, profile, Style(settings=settings))
    for text in several:
        assert marking(text, language) == general.bold(text, language)


@given(cases(), st.lists(st.dictionaries(st.sampled_from("ab"), texts | st.lists(texts, max_size=3)), max_size=4))
def test_members_are_the_same_or_left_to_others(
    case: tuple[TextProfile, str, list[QueryPart], TeaserSettings], documents: list[dict[str, str | list[str]]]
) -> None:
    profile, _, parts, settings = case
    general = Highlighter(parts, profile, settings=settings)
    member = Marking(parts, profile, Style(settings=settings)).of_member(b'"a":')
    assert member is not None

    def bold(value: str | list[str]) -> str | list[str]:
        return general.bold(value) if isinstance(value, str) else [general.bold(text) for text in value]

    stored = [orjson.dumps(document) for document in documents]
    for document, found in zip(documents, _core.mark_members(stored, [member]), strict=True):
        shown = {name: bold(value) if name == "a" else value for name, value in document.items()}
        written = orjson.dumps(shown)
        assert found == written or (found is None and profile.is_stemmed and not _is_plainly_english(document))


SETTINGS = st.builds(
    TeaserSettings,
    length=st.integers(0, 400),
    max_matches=st.integers(0, 4),
    min_length=st.integers(0, 300),
    prefix=st.booleans(),
    surround_max=st.integers(0, 200),
    winsize=st.integers(1, 300),
    winsize_fallback_multiplier=st.sampled_from([0.5, 1.0, 10.0]),
    max_match_candidates=st.sampled_from([1, 2, 5, 1000]),
    stem_min_length=st.integers(1, 6),
    stem_max_extend=st.integers(0, 3),
)
_PIECES = [*WORDS, *["cat", "cats", "dog", "a", "b"] * 6, "\ufff9", "\ufffa", "\ufffb", "\x1f", '"', "\n\n"]
long_texts = st.lists(st.sampled_from(_PIECES), max_size=300).flatmap(
    lambda words: st.sampled_from([" ", "-", ". "]).map(lambda between: between.join(words))
)
TEASED = [((QueryWord(frozenset([word])),),) for word in ("cat", "dog", "a", "conduct")]


def test_an_annotation_without_an_end_is_text() -> None:
    settings = TeaserSettings(length=0, max_matches=0, min_length=0, surround_max=0)
    marking = Marking(TEASED[:1], TextProfile(), Style(NO_TAGS, settings, True, False))
    general = Highlighter(TEASED[:1], TextProfile(), NO_TAGS, settings)
    for text in ("cat \ufff9", "cat \ufff9dog\ufffa", "cat \ufff9\x1f \ufff9"):
        assert marking(text, "") == general.teaser(text, "")
    assert marking("cat \ufff9", "") == "cat \ufff9"


@given(
    cases(), st.lists(st.sampled_from(TEASED), max_size=4), SETTINGS, st.lists(long_texts, max_size=3), st.booleans()
)
def test_teasers_are_the_same_as_of_the_highlighter(
    case: tuple[TextProfile, str, list[QueryPart], TeaserSettings],
    more: list[QueryPart],
    settings: TeaserSettings,
    several: list[str],
    annotated: bool,
) -> None:
    profile, language, parts, _ = case
    parts = [*parts, *more]
    tags = HI_TAGS if len(more) % 2 else NO_TAGS
    marking = Marking(parts, profile, Style(tags, settings, True, annotated))
    general = Highlighter(parts, profile, tags, settings, annotated)
    member = marking.of_member(b'"a":')
    assert member is not None
    for text in several:
        expected = general.teaser(text, language) if text else None
        assert marking(text, language) == expected
        (shown,) = _core.mark_members([orjson.dumps({"a": text})], [member])
        assert shown is None or shown == orjson.dumps({"a": general.teaser(text)})
        assert shown is not None or not text or (profile.is_stemmed and not _is_plainly_english({"a": text}))


def _is_plainly_english(document: dict[str, str | list[str]]) -> bool:
    """Whether the texts have no word at all of another language."""
    value = document.get("a", "")
    texts = [value] if isinstance(value, str) else value
    return all(text.isascii() and not {"und", "der", "de", "en"} & set(text.lower().split()) for text in texts)


@given(st.sampled_from(PROFILES), st.sampled_from(["en", "de", "id"]), st.lists(st.sampled_from(WORDS) | st.text()))
def test_forms_of_many_words_are_those_of_each(profile: TextProfile, language: str, words: list[str]) -> None:
    each = [index_terms(profile, word, language) for word in words]
    assert word_forms(profile, language, words) == [terms[0] if len(terms) == 1 else () for terms in each]


def test_words_that_begin_otherwise_than_their_stem_are_marked_in_phrases_alone() -> None:
    """Indonesian `berjalan` has the stem `jalan`; words that begin like no word of the query are not looked at."""
    profile = profile_of("best", True, None)
    word = QueryWord(frozenset(["jalan"]))
    assert index_terms(profile, "berjalan", "id") == [("jalan",)]
    assert Marking([((word,),)], profile)("berjalan jalan", "id") == "berjalan <hi>jalan</hi>"
    phrase = [((word, word),)]
    assert Marking(phrase, profile)("berjalan jalan", "id") == "<hi>berjalan</hi> <hi>jalan</hi>"


@pytest.mark.parametrize("profile", [profile_of("none", True, "word"), profile_of("none", True, "gram")])
def test_texts_that_are_no_words_are_left_to_the_highlighter(profile: TextProfile) -> None:
    marking = Marking([((QueryWord(frozenset(["ab"])),),)], profile)
    assert marking.of_member(b'"a":') is None
    assert marking("ab") == "<hi>ab</hi>"


def test_parts_of_words_are_left_to_the_highlighter() -> None:
    marking = Marking([((QueryWord(frozenset(["ab"]), within=True),),)], profile_of("none", True, None))
    assert marking.of_member(b'"a":') is None
    assert marking("cab") == "c<hi>ab</hi>"


SCHEMA = """schema d { document d {
  field title type string { indexing: index | summary
    bolding: on }
  field lines type array<string> { indexing: index | summary
    bolding: on }
  field code type string { indexing: index | summary
    bolding: on
    match: word }
  field year type int { indexing: attribute | summary }
  field note type string { indexing: index | summary
    summary: dynamic }
} }"""
DOCUMENTS: list[dict[str, object]] = [
    {"title": 'Cats and a "dog"', "lines": ["A cat", "", "dogs"], "year": 1, "note": "cat " + 'dog "x"\n' * 90},
    {"title": "Die Katze und der Hund sind hier: cat", "note": ""},
    {"title": "Café cat", "lines": ["\n\tcat\u2019s", "x"], "code": "cat", "note": "Cats"},
    {"title": "nothing", "year": 2},
]
QUERIES: list[Item] = [
    WordItem("title", "cat"),
    OrItem((WordItem("title", "dogs"), WordItem("lines", "dog"))),
    OrItem((PhraseItem("title", ("a", "dog")), WordItem("lines", "cat"), TrueItem())),
    OrItem((WordItem("code", "cat"), WordItem("title", "x"))),
    TrueItem(),
    OrItem((WordItem("note", "dog"), WordItem("note", "x"))),
]


def test_summaries_are_the_same_by_the_kernel_and_without(tmp_path: Path) -> None:
    schemas = dict(parse_schemas({"schemas/d.sd": SCHEMA}).schemas)
    with started(tmp_path, schemas) as node:
        node.apply(*[Put(DocumentId("n", "d", str(n)), fields) for n, fields in enumerate(DOCUMENTS)])
        compiled = [_shown(node.node.reader.view(), query, ServedSchemas()) for query in QUERIES]
        with patch.object(Marking, "of_member", return_value=None), patch.object(_core, "mark", return_value=None):
            assert [_shown(node.node.reader.view(), query, ServedSchemas()) for query in QUERIES] == compiled
        assert b'"title":"<hi>Cats</hi> and a' in compiled[0][0]
        assert b"Hund sind hier: <hi>cat</hi>" in compiled[0][1]
        assert b'"note":"cat <hi>dog</hi> \\"<hi>x</hi>\\"\\n<hi>dog</hi>' in compiled[5][0]
        assert b"<sep />" in compiled[5][0]
        kept = ServedSchemas()
        with patch.object(summary, "_form", side_effect=summary._form) as made:
            assert [_shown(node.node.reader.view(), query, kept) for query in QUERIES] == compiled
        assert made.call_count == 1


def _shown(view: View, tree: Item, profiles: ServedSchemas) -> list[bytes]:
    hits = search(view, query_of(tree, rank_profile="unranked"), profiles).hits
    return [hit.fields for hit in sorted(hits, key=lambda hit: hit.document_id)]


SHARED = """schema d { document d {
  field a type string { indexing: index | summary
    bolding: on }
  field b type string { indexing: index | summary
    bolding: on }
  field c type string { indexing: index | summary
    bolding: on
    stemming: none }
}
fieldset default { fields: a, b }
}"""


@pytest.mark.parametrize(
    ("tree", "bolded"),
    [
        (WordItem("default", "cats"), ["<hi>cat</hi> dog", "<hi>cat</hi> dog", "cat dog"]),
        (WordItem("", "cat"), ["<hi>cat</hi> dog", "<hi>cat</hi> dog", "<hi>cat</hi> dog"]),
        (
            OrItem((WordItem("", "cats"), WordItem("a", "dog"))),
            ["<hi>cat</hi> <hi>dog</hi>", "<hi>cat</hi> dog", "cat dog"],
        ),
        (
            OrItem((WordItem("default", "cat"), WordItem("b", "dog"))),
            ["<hi>cat</hi> dog", "<hi>cat</hi> <hi>dog</hi>", "cat dog"],
        ),
        (WordItem("c", "dog"), ["cat dog", "cat dog", "cat <hi>dog</hi>"]),
    ],
)
def test_fields_share_what_they_are_searched_for(tree: Item, bolded: list[str], tmp_path: Path) -> None:
    schemas = dict(parse_schemas({"schemas/d.sd": SHARED}).schemas)
    with started(tmp_path, schemas) as node:
        node.apply(Put(DocumentId("n", "d", "1"), dict.fromkeys("abc", "cat dog")))
        [shown] = _shown(node.node.reader.view(), OrItem((tree, TrueItem())), ServedSchemas())
    assert list(orjson.loads(shown).values()) == bolded
