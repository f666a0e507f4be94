"""What the tree of a query goes through once the user's text is in it, each a function chosen when the query is
prepared: a query without a location has none that looks for one.

    added terms → literals → weakAnd.replace → recall → location → words → checks → significance

The order is that of Vespa's searchers. What goes wrong without regard to values is an error of its place in that order:
a query with two mistakes has the error that it would have if each request were read from its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from paperwasp.base.records import dataclass
from paperwasp.container.search.added_terms import added_terms
from paperwasp.container.search.checks import check_items, check_match_phase, check_text
from paperwasp.container.search.config import SearchConfig, Target
from paperwasp.container.search.literals import with_literals
from paperwasp.container.search.location import Location, read_location, read_position
from paperwasp.container.search.settings import RequestValues, SearchParameters
from paperwasp.container.search.significance import significances, uses_model, with_model, with_significances
from paperwasp.errors import IllegalQuery, PaperwaspError
from paperwasp.query.yql import parse_recall
from paperwasp.query.yql.indexes import Indexes
from paperwasp.schema.model import Schema
from paperwasp.search.operators.boolean import AndItem, OrItem, TrueItem
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem, is_one_token
from paperwasp.text.linguistics.detection import CJK, language_of


class Context(NamedTuple):
    """The context of a rewrite: all that is different from request to request."""

    values: RequestValues
    language: str
    """The language of the query's text, as a tag; empty: English."""


Rewrite = Callable[[Item, Context], Item]


@dataclass(frozen=True, slots=True)
class Failing:
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
