"""Semantic rules in a search: which rule base is used, what its rules read of a request, and what they set.

The rules rewrite the tree of the parsed query, YQL and user's text alike, once: before recall terms, the location and
`weakAnd.replace` have their say. Parameters that they set act as if the request had said so, but for those that the
query has been read by already.
Vespa: https://docs.vespa.ai/en/reference/api/query.html#semantic-rules
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from paperwasp.container.search.config import SearchConfig
from paperwasp.container.search.parameters import PARAMETERS, check_window, full_name, set_parameter
from paperwasp.container.search.settings import SearchParameters
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.query_languages.rules import Rewriting, RuleBase, rewrite
from paperwasp.query_languages.yql.query_type import type_of
from paperwasp.search.operators.item import Item, TermItem

_ALIASES: Final[Mapping[str, tuple[str, ...]]] = {names[0]: names for names, *_ in PARAMETERS if len(names) > 1}
_NAMING: Final = ("model.sources", "model.restrict")
_READ: Final = ("yql", "queryProfile", "select", "select.where", "tracelevel.rules")
_READ_GROUPS: Final = ("model.", "rules.")
_OPERATORS: Final = frozenset({"and", "or", "weakAnd"})
_LEVELS_BEHIND: Final = 2
"""By so much the rules tell less than the trace of the query, unless `tracelevel.rules` says how much."""


class RuledTree(Struct, frozen=True):
    """A tree that rules have been evaluated over, and their trace."""

    tree: Item
    trace: tuple[str, ...] = ()
    fired: bool = False


def rule_base_of(config: SearchConfig, parameters: SearchParameters) -> RuleBase | None:
    """The rule base for a request; None: no rules. Errors: InvalidQuery."""
    rules = parameters.rules
    return None if rules.off else config.rules.named(rules.base)


def ruled(base: RuleBase, tree: Item, parameters: SearchParameters, indexes: frozenset[str]) -> RuledTree:
    """The canonical tree after the rules, which may set `parameters`. `indexes`: what can be searched.

    Errors: InvalidQuery, IllegalQuery for what rules set wrongly.
    """
    level = parameters.rules.trace_level
    if level is None:
        level = max(0, parameters.trace.level - _LEVELS_BEHIND)
    found = rewrite(base, tree, _with_aliases(parameters.values.given), _composite_of(parameters), level)
    if not found.fired:
        return RuledTree(tree, tuple(found.trace))
    _check(base, found.tree, tree, indexes)
    _set(base, found, parameters)
    return RuledTree(found.tree.canonical(), tuple(found.trace), fired=True)


def _with_aliases(given: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a request by all of their names."""
    named = dict(given)
    for name, value in given.items():
        full = full_name(name)
        named |= dict.fromkeys(_ALIASES.get(full, (full,)), value)
    return named


def _composite_of(parameters: SearchParameters) -> str:
    composite = parameters.text.parts.get("composite") or type_of(parameters.text.type).composite
    return composite if composite in _OPERATORS else "and"


def _check(base: RuleBase, tree: Item, before: Item, indexes: frozenset[str]) -> None:
    """Errors: InvalidQuery for a label that is nothing that can be searched."""
    known = indexes | {item.index for item in before.walk() if isinstance(item, TermItem)} | {"default"}
    for item in tree.walk():
        if isinstance(item, TermItem) and item.index not in known:
            raise InvalidQuery(
                f"The rule base '{base.name}' makes a term in '{item.index}', which is no field, fieldset or attribute "
                "of what is searched"
            )


def _set(base: RuleBase, found: Rewriting, parameters: SearchParameters) -> None:
    for name, value in found.parameters.items():
        full = full_name(name)
        if full in _READ or (full.startswith(_READ_GROUPS) and full not in _NAMING):
            raise InvalidQuery(
                f"A rule of the rule base '{base.name}' sets '{name}', which the query has been read by already"
            )
        if parameters.profile is not None and parameters.profile.rule(full).is_fixed:
            continue
        try:
            set_parameter(parameters, name, value)
        except IllegalQuery as error:
            raise IllegalQuery(f"The rule base '{base.name}' sets '{name}': {error.message}") from None
        parameters.values.given[full] = value
    if found.parameters:
        check_window(parameters, parameters.values)
