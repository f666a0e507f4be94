"""Rewrites of the tree of a query, once the user's text is in it, each a function chosen when the query is
prepared: a query without a location has none that looks for one.

    added terms → literals → weakAnd.replace → recall → location → words → checks → significance

The order is that of Vespa's searchers. What goes wrong without regard to values is an error of its place in that order:
a query with two mistakes has the error that it would have if each request were read from its text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.container.search.added_terms import added_terms
from paperwasp.container.search.config import SearchConfig, Target
from paperwasp.container.search.locations import Location, read_location, read_position
from paperwasp.container.search.settings import RequestValues, SearchParameters
from paperwasp.document.types import STRING, NumericType
from paperwasp.errors import IllegalQuery, InvalidQuery, PaperwaspError
from paperwasp.query_languages.yql import parse_recall
from paperwasp.query_languages.yql.indexes import Indexes
from paperwasp.schema.model import Field, Schema
from paperwasp.search.operators.boolean import AndItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.item import Annotated, Item, TermItem
from paperwasp.search.operators.same_element import SameElementItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import TOKEN, WordItem, is_one_token
from paperwasp.text.linguistics.detection import CJK, language_of
from paperwasp.text.linguistics.significance import SignificanceModel, SignificanceModels


class Context(NamedTuple):
    """The context of a rewrite: all that is different from request to request."""

    values: RequestValues
    language: str
    """The language of the query's text, as a tag; empty: English."""


Rewrite = Callable[[Item, Context], Item]


class Failing(Struct, frozen=True):
    """A rewrite that fails for all values."""

    error: PaperwaspError

    def __call__(self, tree: Item, context: Context) -> Item:
        raise self.error


AddTerms = Callable[[Item | None, RequestValues], Item]
"""From the tree, or nothing where no text was given, to a tree with the terms of parameters."""


def choose_terms(parameters: SearchParameters, indexes: Indexes) -> AddTerms:
    """Makes the rewrite that adds the terms of `wand.*` and `boolean.*`; it fails where there is nothing to search for,
    not even a place."""
    try:
        added = tuple(added_terms(parameters.wand, parameters.predicate, indexes))
    except PaperwaspError as error:
        failing = Failing(error)
        return lambda tree, values: failing(TrueItem(), Context(values, ""))
    return partial(_with_terms, added) if added else _with_something


def _with_terms(added: tuple[Item, ...], tree: Item | None, values: RequestValues) -> Item:
    return AndItem(added if tree is None else (tree, *added)).canonical()


def _with_something(tree: Item | None, values: RequestValues) -> Item:
    if tree is not None:
        return tree
    if values.location or values.position.is_given:
        return TrueItem()
    raise IllegalQuery("No query")


def choose_rewrites(parameters: SearchParameters, targets: tuple[Target, ...], indexes: Indexes) -> Iterator[Rewrite]:
    """The rewrites of the tree as a whole, by parameters and schemas: literals, operators, recall terms, places."""
    if indexes.has_literals:
        yield lambda tree, context: with_literals(tree, indexes)
    text, values = parameters.text, parameters.values
    located = bool(values.location) or values.position.is_given
    names = {name.lower() for name in values.given}
    locating = located or not names.isdisjoint(_LOCATING) or any(name.startswith("pos.") for name in names)
    if locating or text.weak_and_replaces_or or text.recall:
        schemas = tuple(schema for target in targets for schema in target.schemas)
        yield partial(_as_a_whole, parameters, schemas, indexes)
    yield _in_any_order
    if text.is_unstemmed:
        yield lambda tree, context: _map_items(tree, _unstem)


_LOCATING: Final = frozenset(("location", "ranking.location"))


def _as_a_whole(
    parameters: SearchParameters, schemas: tuple[Schema, ...], indexes: Indexes, tree: Item, context: Context
) -> Item:
    text, location = parameters.text, _location(context.values)
    if not (text.weak_and_replaces_or or location or text.recall):
        return tree
    if text.weak_and_replaces_or:
        tree = _with_weak_ands(tree, text.wand_hits)
    if text.recall:
        tree = parse_recall(text.recall, text.default_index, indexes).applied_to(tree)
    if location is not None:
        tree = location.applied_to(tree, schemas)
    return tree.canonical()


def _location(values: RequestValues) -> Location | None:
    if values.location:
        return read_location(values.location)
    return read_position(values.position) if values.position.is_given else None


def _with_weak_ands(tree: Item, target_hits: int) -> Item:
    return _map_items(tree, lambda item: WeakAndItem(item.children, target_hits) if isinstance(item, OrItem) else item)


def _map_items(item: Item, change: Callable[[Item], Item]) -> Item:
    """The tree with every item changed, children first."""
    children = item.children_of()
    return change(item.with_children(tuple(_map_items(child, change) for child in children)) if children else item)


def _in_any_order(tree: Item, context: Context) -> Item:
    """In a language that puts no spaces between words, the tokens of one text are an and, and no phrase.

    Vespa: CJKSearcher.java
    """
    return _map_items(tree, _in_pieces) if context.language and language_of(context.language) in CJK else tree


def _in_pieces(item: Item) -> Item:
    if not isinstance(item, WordItem) or is_one_token(item.word):
        return item
    return replace(item, annotations=replace(item.annotations, and_segmenting=True))


def _unstem(item: Item) -> Item:
    """Vespa: StemmingSearcher.java, which the parameter `nostemming` turns off."""
    if not isinstance(item, TermItem):
        return item
    unstemmed = replace(item, annotations=replace(item.annotations, stem=False))
    return unstemmed.map_parts(lambda part: _map_items(part, _unstem))


def choose_checks(parameters: SearchParameters, targets: tuple[Target, ...]) -> Iterator[Rewrite]:
    """The checks that refuse queries which are wrong whatever the documents."""
    yield partial(_check, [schema for target in targets for schema in target.schemas])
    try:
        check_match_phase(parameters, targets)
    except PaperwaspError as error:
        yield Failing(error)


def _check(schemas: Sequence[Schema], tree: Item, context: Context) -> Item:
    check_items(tree, schemas)
    check_text(context.values.query, tree)
    return tree


def choose_significance(
    config: SearchConfig, parameters: SearchParameters, targets: tuple[Target, ...]
) -> Iterator[Rewrite]:
    """The rewrites that set how rare words are, where the query or a model defines it."""
    schemas = [schema for target in targets for schema in target.schemas]
    try:
        by_model = uses_model(parameters.use_significance_model, schemas, parameters.rank_profile)
    except PaperwaspError as error:
        yield Failing(error)
        return
    if by_model:
        said = parameters.text.language or parameters.text.locale
        yield lambda tree, context: with_model(tree, config.significance, said, context.language)
    if given := significances(parameters.rank_properties):
        yield lambda tree, context: with_significances(tree, given)


# Refuses queries that are wrong whatever the documents: by the checks of their items, for text that was encoded twice,
# and for match-phase by an attribute that cannot be its own.
#
# Vespa: com.yahoo.search.searchers.InputCheckingSearcher, ValidateMatchPhaseSearcher


_SINGLE_CHARACTERS: Final = 4
"""More words of one character than these make a text worth a look."""


def check_items(item: Item, schemas: Sequence[Schema], outer: str = "") -> None:
    """Errors: IllegalQuery, InvalidQuery for what is wrong in this tree, or at its root, which is below `outer`."""
    if isinstance(item, TermItem):
        item.check(".".join(name for name in (outer, item.index) if name), schemas)
    elif isinstance(item, SameElementItem):
        outer = item.index
    for child in item.children_of():
        if type(child) is not WordItem:  # most are, and nothing is wrong with them
            check_items(child, schemas, outer)


def check_text(text: str | None, tree: Item) -> None:
    """Errors: IllegalQuery for a user's text that was encoded twice."""
    if text and not text.isascii() and _is_encoded_twice(text) and _has_many_single_characters(tree):
        raise IllegalQuery(
            "The user input has been determined to be double encoded UTF-8. "
            "Please investigate whether this is a false positive."
        )


def _is_encoded_twice(text: str) -> bool:
    """Whether the characters of a text are the bytes of another."""
    try:
        text.encode("latin-1").decode()
    except UnicodeError:
        return False
    return True


def _has_many_single_characters(tree: Item) -> bool:
    words = (word for item in tree.walk() if isinstance(item, WordItem) for word in TOKEN.findall(item.word))
    return sum(len(word) == 1 for word in words) > _SINGLE_CHARACTERS


def check_match_phase(parameters: SearchParameters, targets: Iterable[Target]) -> None:
    """Errors: InvalidQuery for an attribute that match-phase cannot be by."""
    schemas = [schema for target in targets for schema in target.schemas]
    for settings, is_fit, purpose, wanted in (
        (parameters.match_phase, _is_fit_for_match_phase, "match-phase", "numeric attribute with fast-search"),
        (parameters.diversity, _is_fit_for_diversity, "match-phase diversification", "numeric or string attribute"),
    ):
        name = settings.get("attribute")
        if not isinstance(name, str):
            continue
        fields = (schema.field_named(name) for schema in schemas)
        if not any(field is not None and is_fit(field) for field in fields):
            raise InvalidQuery(
                f"The attribute '{name}' is not available for {purpose}. It must be a single value {wanted}."
            )


def _is_fit_for_match_phase(field: Field) -> bool:
    return isinstance(field.type, NumericType) and field.attribute is not None and field.attribute.fast_search


def _is_fit_for_diversity(field: Field) -> bool:
    return (isinstance(field.type, NumericType) or field.type == STRING) and field.attribute is not None


# Ranking by fields with `rank: literal`: adds to a query its words in the index of the words as they are.
#
#     title contains "Cars"  →  rank(title contains "Cars", title_literal contains "cars")
#
# Vespa: LiteralBoostSearcher, which does the same.


def with_literals(tree: Item, indexes: Indexes) -> Item:
    """The tree with these words behind it; itself where there are none."""
    words = ((indexes.reading(index).literal, word) for index, word in tree.literal_words())
    found = tuple(WordItem(literal, word.lower()) for literal, word in words if literal)
    if not found:
        return tree
    return RankItem((*tree.children, *found)) if isinstance(tree, RankItem) else RankItem((tree, *found))


# How rare the words of a query are, where the query says so: by a significance model, or by rank properties.
#
# Vespa: https://docs.vespa.ai/en/ranking/significance.html


def uses_model(said: bool | None, schemas: Iterable[Schema], rank_profile: str) -> bool:
    """Whether words are to have the frequencies of a model. Errors: IllegalQuery where schemas differ."""
    if said is not None:
        return said
    profiles = {schema.name: schema.rank_profiles.get(rank_profile) for schema in schemas}
    uses = {name: bool(profile and profile.use_significance_model) for name, profile in profiles.items()}
    if len(set(uses.values())) > 1:
        raise IllegalQuery(
            f"Inconsistent 'significance' configuration for the rank profile '{rank_profile}' in the schemas "
            f"[{', '.join(uses)}]: restrict the query to some of them, or say the same in all"
        )
    return any(uses.values())


def with_model(tree: Item, models: SignificanceModels, said: str, detected: str) -> Item:
    """The tree with the frequencies of the model for the language that is said, or detected. Errors: IllegalQuery."""
    try:
        return _with_frequencies(tree, models.chosen(said, detected))
    except ValueError as error:
        raise IllegalQuery(str(error)) from None


_SIGNIFICANCE: Final = compile_later(r"vespa\.term\.([1-9][0-9]{0,8})\.significance")


def significances(properties: Mapping[str, str]) -> dict[int, str]:
    """The rank properties `vespa.term.<n>.significance`, by the number of the term."""
    return {int(found[1]): text for name, text in properties.items() if (found := _SIGNIFICANCE.fullmatch(name))}


def with_significances(tree: Item, given: Mapping[int, str]) -> Item:
    """The tree with the significances that are given to its terms.

    Terms have numbers from 1, in the order of the tree, as Vespa numbers items (Model.java, `setUniqueIDs`).
    """
    return _significant(tree, itertools.count(1), given)


def _significant(item: Item, numbers: Iterator[int], given: Mapping[int, str]) -> Item:
    if isinstance(item, Annotated):
        text = given.get(next(numbers))
        if text is None:
            return item
        return replace(item, annotations=replace(item.annotations, significance=_number(text)))
    children, excluded = item.children_of(), item.excluded()
    wanted = [_significant(child, numbers, given) for child in children[: len(children) - len(excluded)]]
    unranked = [_significant(child, numbers, {}) for child in excluded]  # they have numbers all the same
    return item.with_children((*wanted, *unranked)) if children else item


def _number(text: str) -> float:
    """The number that a text writes; 0 where it writes none, as in Vespa."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _with_frequencies(item: Item, model: SignificanceModel) -> Item:
    """Adds frequencies of a model to the words; a significance or frequency in the query stays.

    Forms of a word have the frequency of the rarest. Vespa: SignificanceSearcher.java (`setIDF`).
    """
    if not isinstance(item, TermItem):
        return item.map_parts(lambda child: _with_frequencies(child, model))
    words = item.counted_words()
    notes = item.annotations
    if notes.significance is not None or notes.document_frequency is not None or not words:
        return item
    return replace(item, annotations=replace(notes, document_frequency=min(map(model.document_frequency, words))))
