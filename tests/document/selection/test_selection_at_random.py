"""Random selections: their text says them, and they say of documents what the plain twin says."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.document.ids import DocumentId
from paperwasp.document.selection import (
    PlainSubject,
    Selection,
    check_selection,
    conjunction,
    is_everything,
    location_of,
    matcher_of,
    negate,
    parse_selection,
    types_of,
)
from paperwasp.document.selection.tree import (
    And,
    Arithmetic,
    Comparison,
    ConditionNode,
    Constant,
    FieldValue,
    FunctionCall,
    IdPart,
    Literal,
    Not,
    Now,
    Or,
    TypeIs,
    ValueNode,
    Variable,
)
from paperwasp.document.updates import Index, Key, Member
from tests.document.selection.plain_selection import verdict
from tests.document.selection.test_selection_scripts import NOW_US, SUBJECTS, TYPES, tracks

NAMES = st.sampled_from(["x", "y"])
TEXTS = st.sampled_from(["", "a", "foo", "val1", "structval1", "g", "music", "Å\n\"'\\\x01"])
NUMBERS = st.sampled_from([0, 1, 3, 15, 16, -7, 1234, 2**63 - 1, -(2**63)]) | st.sampled_from([0.5, -2.0, 1e300, 24.0])
PATTERNS = st.sampled_from(["a", "^f.*o$", "val[0-9]", "(a|s)t", "", "x*$"])
GLOBS = st.sampled_from(["*", "f*", "*1", "*ct*", "?", "s*l?", "foo", "", "v?l*1"])
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "="])

PATHS: list[tuple[str, st.SearchStrategy[tuple[Any, ...]]]] = [
    ("year", st.just(())),
    ("title", st.just(())),
    ("cool", st.just(())),
    ("expires", st.just(())),
    ("best", st.sampled_from([(), (Member("key"),), (Member("value"),), (Member("inner"), Member("key"))])),
    ("names", st.sampled_from([(), (Key("3"),), (Key("9"),), (Member("key"),), (Member("value"),)])),
    ("names", NAMES.map(lambda name: (Variable(name),))),
    ("tags", st.sampled_from([(), (Key("val1"),), (Key("a b"),), (Member("value"),)])),
    ("tags", NAMES.map(lambda name: (Variable(name),))),
    ("tracks", st.sampled_from([(), (Index(1), Member("key")), (Index(7),), (Member("value"),)])),
    ("tracks", st.tuples(NAMES.map(Variable), st.sampled_from([Member("key"), Member("value")]))),
    ("nested", st.tuples(NAMES.map(Variable), NAMES.map(Variable), st.sampled_from([Member("key"), Member("value")]))),
    ("nested", st.tuples(NAMES.map(Variable), st.just(Member("key")))),
    ("nested", st.tuples(st.just(Member("value")), NAMES.map(Variable), st.just(Member("value")))),
]


def field(choice: tuple[str, st.SearchStrategy[tuple[Any, ...]]]) -> st.SearchStrategy[ValueNode]:
    types = st.sampled_from(["music", "music", "music", "album"])
    return st.builds(FieldValue, types, st.just(choice[0]), choice[1])


LEAVES: st.SearchStrategy[ValueNode] = st.one_of(
    st.sampled_from(PATHS).flatmap(field),
    st.sampled_from(PATHS).flatmap(field),
    st.builds(Literal, TEXTS | NUMBERS | st.none() | st.booleans()),
    st.builds(IdPart, st.sampled_from(["", "scheme", "namespace", "type", "specific", "user", "group"])),
    st.just(Now()),
)
VALUES: st.SearchStrategy[ValueNode] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(FunctionCall, st.sampled_from(["abs", "hash", "lowercase"]), inner),
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "%"]), inner, inner),
    ),
    max_leaves=4,
)
COMPARISONS: st.SearchStrategy[ConditionNode] = st.one_of(
    st.builds(Comparison, OPERATORS, VALUES, VALUES),
    st.builds(Comparison, st.just("=~"), VALUES, PATTERNS.map(Literal)),
    st.builds(Comparison, st.just("="), VALUES, GLOBS.map(Literal)),
)
CONDITIONS: st.SearchStrategy[ConditionNode] = st.recursive(
    COMPARISONS
    | COMPARISONS
    | st.builds(Constant, st.booleans())
    | st.builds(TypeIs, st.sampled_from(["music", "album"])),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)

FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "year": st.sampled_from([0, 15, 24, -7]),
        "title": TEXTS,
        "cool": st.booleans(),
        "best": st.fixed_dictionaries(
            {}, optional={"key": st.just(15), "value": TEXTS, "inner": st.just({"key": "foo"})}
        ),
        "tracks": st.lists(st.sampled_from([15, 16]), max_size=3).map(lambda keys: tracks(*keys)),
        "names": st.dictionaries(st.sampled_from([1, 3, 15]), TEXTS, max_size=3),
        "tags": st.dictionaries(TEXTS, st.sampled_from([1, 3]), max_size=3),
        "nested": st.dictionaries(
            TEXTS, st.lists(st.sampled_from([15, 16]), max_size=2).map(lambda k: tracks(*k)), max_size=2
        ),
    },
)
IDS = st.sampled_from(["id:foo:music::a", "id:g:music:n=1234:foo", "id:foo:music:g=g:val1", "id:foo:album:n=3:a"])
DOCUMENTS = st.builds(
    lambda id_, fields: PlainSubject(DocumentId.parse(id_), fields, TYPES[id_.split(":")[2]]), IDS, FIELDS
)


@settings(max_examples=150, deadline=None)
@given(CONDITIONS, DOCUMENTS)
def test_a_selection_says_what_the_plain_twin_says(root: ConditionNode, document: PlainSubject) -> None:
    selection = Selection(root)
    check_selection(selection, TYPES)
    for subject in (document, *SUBJECTS.values()):
        assert matcher_of(selection)(subject, NOW_US) == verdict(root, subject, NOW_US), str(selection)


@settings(max_examples=100, deadline=None)
@given(CONDITIONS)
def test_the_text_of_a_selection_says_it(root: ConditionNode) -> None:
    text = str(Selection(root))
    found = parse_selection(text)
    assert repr(found.root) == repr(root)
    assert str(found) == text


@settings(max_examples=100, deadline=None)
@given(CONDITIONS, DOCUMENTS)
def test_what_is_known_of_a_selection_holds(root: ConditionNode, document: PlainSubject) -> None:
    selection = Selection(root)
    said = matcher_of(selection)(document, NOW_US)
    if is_everything(selection):
        assert said is True
    if said is True:
        assert location_of(selection) in (None, document.id.gid[:4])
        types = types_of(selection)
        assert types is None or any(map(document.is_a, types))


@settings(max_examples=50, deadline=None)
@given(CONDITIONS, CONDITIONS, DOCUMENTS)
def test_conjunctions_and_negations(one: ConditionNode, other: ConditionNode, document: PlainSubject) -> None:
    both, whole = conjunction(Selection(one), Selection(other)), And((one, other))
    assert matcher_of(both)(document, NOW_US) == matcher_of(Selection(whole))(document, NOW_US)
    assert parse_selection(str(both)) == both
    assert matcher_of(negate(both))(document, NOW_US) == matcher_of(Selection(Not(both.root)))(document, NOW_US)
