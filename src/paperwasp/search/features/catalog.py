"""The catalog of rank features: what each is in one rank profile of one schema.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.document.tensor.batch import KeptTensors, StoredTensors
from paperwasp.errors import LanguageError
from paperwasp.ranking.expression import parse_reference
from paperwasp.ranking.foreach import DEFAULT_TERMS, OPERATIONS, condition_of
from paperwasp.ranking.names import Description
from paperwasp.ranking.program import Bm25Field, FindBest
from paperwasp.ranking.scope import Scope, Source, argument_text
from paperwasp.search.features.block import Block
from paperwasp.search.features.bm25 import bm25_field_of
from paperwasp.search.features.family import Compute, Family, RankSetup, check_arguments, families, register
from paperwasp.search.features.parts import PartsOf, parts_of
from paperwasp.text.parsing.tokens import did_you_mean

# foreach(dimension, variable, feature, condition, operation): a feature for each term, field or attribute.
#
# The compiler of expressions puts the features, and the operation on them, in its place (`ranking.foreach`).
# Vespa:
# https://docs.vespa.ai/en/reference/ranking/rank-features.html#foreach(dimension,variable,feature,condition,operation)


def _terms(setup: RankSetup) -> tuple[str, ...]:
    most = setup.whole(DEFAULT_TERMS, limits.LISTED_TERMS, "foreach.maxTerms")
    return tuple(str(number) for number in range(most))


_DIMENSIONS: Final[Mapping[str, Callable[[RankSetup], tuple[str, ...]]]] = {
    "terms": _terms,
    "fields": lambda setup: setup.listed_index_fields,
    "attributes": lambda setup: setup.listed_attributes,
}
_PARAMETERS: Final = 5


def features_of_each(setup: RankSetup, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The features that foreach goes over. Raises LanguageError for wrong arguments."""
    if len(arguments) != _PARAMETERS:
        raise LanguageError(f"rank feature 'foreach' takes {_PARAMETERS} argument(s), not {len(arguments)}")
    dimension, variable, feature, condition, operation = arguments
    _one_of("what foreach goes over", dimension, tuple(_DIMENSIONS))
    _one_of("the operation of foreach", operation, OPERATIONS)
    try:
        condition_of(condition)
    except ValueError as error:
        raise LanguageError(str(error)) from None
    word = re.compile(rf"\b{re.escape(variable)}\b")
    return tuple(word.sub(lambda match, each=value: each, feature) for value in _DIMENSIONS[dimension](setup))  # type: ignore[misc]


@register("foreach", "name", "name", "name", "name", "name", outputs=("value",))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    raise LanguageError("foreach stands in expressions, which the features that it goes over are part of")


def _one_of(what: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise LanguageError(f"{what} is {' or '.join(words)}, not {word!r}{did_you_mean(word, words)}")


class BoundFeature(Struct, frozen=True, eq=False):
    """A rank feature of one profile, checked and ready. `name` is canonical."""

    name: str
    compute: Callable[[Block], Any]
    bm25_field: Bm25Field | None = None
    query_name: str | None = None
    bind_parts: Callable[[], PartsOf | None] = lambda: None
    """Binds the parts of the feature, for explanations."""

    @property
    def kept(self) -> Callable[[Block], KeptTensors] | None:
        """The function that finds its tensors in a tensor attribute; None: it is no such attribute."""
        return getattr(self.compute, "kept", None)

    @property
    def stored(self) -> Callable[[Block], StoredTensors | None] | None:
        """The same of all documents."""
        return getattr(self.compute, "stored", None)

    @property
    def best(self) -> FindBest | None:
        """The kernel that finds the best hits by it; None: only native features have one."""
        return getattr(self.compute, "best", None)


DescribedFeatures = dict[tuple[str, tuple[str | None, ...], str], Description]
"""(name, arguments, output) → what it is, of one schema."""


class Catalog(Struct):
    """The rank features as one rank profile of one schema may use them: a `paperwasp.ranking.profile.Catalog`."""

    setup: RankSetup
    described: DescribedFeatures = field(default_factory=dict)
    """Descriptions that the profiles of a schema share."""
    _bound: dict[str, BoundFeature] = field(default_factory=dict)

    def describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        """The type of a feature; raises LanguageError for one that is unknown or has wrong arguments."""
        if name == "query":  # each profile says itself what its inputs are
            return self._describe(name, arguments, output)
        key = (name, arguments, output)
        known = self.described.get(key)
        if known is None:
            known = self.described[key] = self._describe(name, arguments, output)
        return known

    def _describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        family = families().get(name)
        if family is None:
            names = [*families(), *self.setup.profile.functions, *self.setup.profile.constants]
            raise LanguageError(f"unknown rank feature or function {name!r}{did_you_mean(name, names)}")
        if output and output not in family.outputs and not family.any_output:
            raise LanguageError(f"rank feature {name!r} has no output {output!r}; it has {', '.join(family.outputs)}")
        positional = _positional(name, arguments)
        pending = check_arguments(family, self.setup, positional)
        last = len(family.parameters) - 1
        expressions = tuple(
            number for number in range(len(arguments)) if family.parameters[min(number, last)] == "expression"
        )
        known = tuple(argument for argument in positional if argument is not None)
        if len(known) < len(positional):
            return Description(None, pending, expressions)
        pending = family.pending(self.setup, known, output) or pending
        return Description(family.type(self.setup, known, output), pending, expressions)

    def each(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """The features that foreach(arguments) goes over; raises LanguageError for wrong arguments."""
        return features_of_each(self.setup, arguments)

    def bind(self, name: str, arguments: tuple[str, ...], output: str) -> BoundFeature:
        """The feature, which `describe` has nothing against; raises LanguageError for wrong rank properties."""
        canonical = feature_name(name, arguments, output)
        if canonical not in self._bound:
            self.describe(name, arguments, output)
            family = families()[name]
            known = self._searched(family, _positional(name, arguments))
            given = self.setup, known, output or family.outputs[0]
            compute = family.bind(*given)
            is_pruned_by = name == "bm25" and len(known) == 1 and self.setup.has_bm25(known[0])
            bm25_field = bm25_field_of(self.setup, known[0]) if is_pruned_by else None
            query_name = known[0] if name == "query" else None
            self._bound[canonical] = BoundFeature(
                canonical, compute, bm25_field, query_name, partial(parts_of, name, *given)
            )
        return self._bound[canonical]

    def _searched(self, family: Family, arguments: tuple[str | None, ...]) -> tuple[str, ...]:
        """The arguments, with fields by the names that terms search them by, but for what reads values."""
        if family.name == "attribute":
            return tuple(argument for argument in arguments if argument is not None)
        last = len(family.parameters) - 1
        return tuple(
            self.setup.searched_name(argument) if family.parameters[min(number, last)] in _SEARCHED else argument
            for number, argument in enumerate(arguments)
            if argument is not None
        )


_SEARCHED: Final = frozenset({"attribute", "any-field", "field", "index", "single-index"})
"""The kinds of arguments that are fields whose terms a feature looks at."""


def _positional(name: str, arguments: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """The arguments of `bm25(field:title, label:x)`: the field, and the label if there is one.

    The word `field:` of the first argument may be left out.
    """
    if name != "bm25" or not arguments or (len(arguments) == 1 and ":" not in (arguments[0] or "")):
        return arguments
    first, *others = (argument or "" for argument in arguments)
    named = (first if ":" in first else f"field:{first}", *others)
    given = dict(argument.partition(":")[::2] for argument in named)
    if len(given) < len(named) or "field" not in given or given.keys() - {"field", "label"}:
        raise LanguageError("bm25 takes field: and label:")
    return tuple(given[key].strip() for key in ("field", "label") if key in given)


def feature_name(name: str, arguments: tuple[str, ...], output: str = "") -> str:
    """`name(arguments).output`, with quotes around an argument that is not a name or number."""
    listed = ",".join(a if re.fullmatch(r"[A-Za-z0-9_@$.(),-]+", a) else f'"{a}"' for a in arguments)
    return f"{name}{f'({listed})' if arguments else ''}{'.' + output if output else ''}"


def feature_named(text: str) -> str:
    """The canonical name of the feature that a text names. Raises LanguageError for what names none."""
    node = parse_reference(text)
    if node.name not in families():
        raise LanguageError(f"there is no rank feature {node.name!r}")
    scope = Scope(Source(text))
    return feature_name(node.name, tuple(argument_text(each, scope) or "" for each in node.arguments), node.output)


def default_rank_features(setup: RankSetup) -> tuple[str, ...]:
    """The features that `ranking.listFeatures` shows: those that each family lists, by name."""
    return tuple(name for family in sorted(families()) for name in families()[family].listed(setup))
