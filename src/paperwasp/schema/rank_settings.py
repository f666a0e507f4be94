"""What one rank profile says itself, read from its syntax; inheritance comes after, in `rank_profiles`.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#rank-profile
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from paperwasp.errors import Position
from paperwasp.schema.model import Constant, Function, Input
from paperwasp.schema.problems import Problems
from paperwasp.schema.tree import Node
from paperwasp.tensor.types import NUMBER

EXPRESSION_SUFFIX: Final = ".expression"
FEATURE_LISTS: Final = ("match-features", "summary-features", "rank-features")


@dataclass(slots=True)
class RankSettings:
    """A rank profile's own settings or, after inheritance, its effective ones. What is not set is absent."""

    name: str
    node: Node | None = None
    single: dict[str, object] = field(default_factory=dict)
    """Field name of `RankProfile` → value, for the settings that have one value."""
    functions: dict[str, Function] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)
    features: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Keyword of FEATURE_LISTS → features, without duplicates."""
    inherited_features: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Keyword of FEATURE_LISTS → the parents whose features come before those of this profile."""
    properties: dict[str, str] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    filters: dict[str, bool] = field(default_factory=dict)
    """Field → whether it is a filter, whatever the field itself says."""
    is_default: bool = False
    """Whether it is the profile `default` or inherits it; the weights of fields count in these only."""

    @property
    def parents(self) -> tuple[str, ...]:
        return self.node.inherits if self.node else ()

    @property
    def position(self) -> Position | None:
        return self.node.position if self.node else None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a rank profile may refer to outside itself."""

    fields: Collection[str]
    files: Mapping[str, str]
    """Path → text of the package, for expressions in files of their own."""
    directory: str
    """Where those files are."""
    problems: Problems


_Setting = Callable[[RankSettings, Node, Surroundings], None]


def read_settings(name: str, node: Node, around: Surroundings) -> RankSettings:
    """The settings that `node` declares under the full profile name `name`."""
    settings = RankSettings(name, node, is_default=name == "default")
    for child in node.children:
        _apply(_SETTINGS, settings, child, around)
    for function in settings.functions.keys() & settings.constants.keys():
        message = f"rank-profile {name} has both a constant and a function named {function!r}"
        around.problems.error(message, settings.functions[function].position)
    return settings


def _apply(table: Mapping[str, _Setting], settings: RankSettings, node: Node, around: Surroundings) -> None:
    if setting := table.get(node.keyword):
        setting(settings, node, around)
    elif why := _WITHOUT_EFFECT.get(node.keyword):
        around.problems.without_effect(node, why)
    else:
        around.problems.unsupported(node, f"rank-profile {settings.name}")


def _each(table: Mapping[str, _Setting]) -> _Setting:
    def apply(settings: RankSettings, node: Node, around: Surroundings) -> None:
        for child in node.children:
            _apply(table, settings, child, around)

    return apply


def _single(name: str, convert: Callable[[Node, Surroundings], object]) -> _Setting:
    def apply(settings: RankSettings, node: Node, around: Surroundings) -> None:
        settings.single[name] = convert(node, around)

    return apply


def _inner(settings: RankSettings, node: Node, around: Surroundings) -> None:
    """An inner profile is a profile of its own; whoever lists the profiles of the schema finds it."""


# Conversions


def _expression(node: Node, around: Surroundings) -> str:
    """The text of an expression, from the file that it names if it does."""
    text = node.text.strip()
    if not text.startswith("file:"):
        if not text:
            around.problems.error("the expression is empty", node.value_position)
        return text
    name = text.removeprefix("file:").strip().removesuffix(EXPRESSION_SUFFIX) + EXPRESSION_SUFFIX
    path = f"{around.directory}{name}"
    if "/" in name:
        around.problems.error(f"an expression file cannot be in another directory: {name!r}", node.value_position)
    elif path not in around.files:
        around.problems.error(f"there is no file {path!r}", node.value_position)
    return around.files.get(path, "0").strip()


def _count(node: Node, around: Surroundings) -> int:
    count = int(node.text.rstrip("L"))
    if count < 0:
        around.problems.error(f"{node.keyword} is negative", node.value_position)
    return max(count, 0)


def _number(node: Node, around: Surroundings) -> float:
    return float(node.text.rstrip("L"))


def _true(node: Node, around: Surroundings) -> bool:
    return True


# Settings with names


def _function(settings: RankSettings, node: Node, around: Surroundings) -> None:
    problems = around.problems
    if node.name in settings.functions:
        problems.error(f"function {node.name} is defined twice in rank-profile {settings.name}", node.position)
    if len(set(node.arguments)) < len(node.arguments):
        problems.error(f"function {node.name} has two parameters of one name", node.position)
    expressions = list(node.all("expression"))
    if len(expressions) != 1:
        problems.error(f"function {node.name} must have one expression, and has {len(expressions)}", node.position)
        return
    text, position = _expression(expressions[0], around), expressions[0].value_position
    settings.functions[node.name] = Function(node.name, node.arguments, text, position)


def _constants(settings: RankSettings, node: Node, around: Surroundings) -> None:
    for child in node.children:
        if child.name in settings.constants:
            around.problems.error(f"constant {child.name} is defined twice", child.position)
        value = _scalar(child, "constant", around)
        if value is not None:
            settings.constants[child.name] = Constant(child.name, NUMBER, repr(value), position=child.position)


def _inputs(settings: RankSettings, node: Node, around: Surroundings) -> None:
    for child in node.children:
        default = _scalar(child, "input", around)
        declared = Input(NUMBER, "" if default is None else repr(default))
        if settings.inputs.setdefault(child.name, declared) != declared:
            around.problems.error(f"input query({child.name}) is defined twice", child.position)


def _scalar(node: Node, what: str, around: Surroundings) -> float | None:
    """The number that a constant or an input has as value; other kinds are told to `problems`."""
    if node.type.startswith("tensor") or node.text.startswith(("{", "[", "file:")):
        around.problems.error(f"{what} {node.name} is a tensor, which is not supported yet", node.position)
        return None
    if node.type == "string":
        around.problems.error(f"{what} {node.name} is a string, which is not supported yet", node.position)
        return None
    if node.type in ("float", "long"):
        around.problems.note(f"{what} {node.name} has type double: there is no {node.type}", node.position)
    if not node.values:
        if what == "constant":
            around.problems.error(f"constant {node.name} has no value", node.position)
        return None
    return _finite(node, what, around)


def _finite(node: Node, what: str, around: Surroundings) -> float | None:
    try:
        value = float(node.text.rstrip("L"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        around.problems.error(f"the value of {what} {node.name} is not a number: {node.text!r}", node.value_position)
        return None
    return value


def _features(settings: RankSettings, node: Node, around: Surroundings) -> None:
    try:
        features = split_features(node.text)
    except ValueError as error:
        around.problems.error(f"{node.keyword}: {error}", node.value_position)
        return
    known = settings.features.get(node.keyword, ())
    settings.features[node.keyword] = tuple(dict.fromkeys(known + features))
    if node.inherits:
        settings.inherited_features[node.keyword] = node.inherits
    for parent in node.inherits:
        if parent not in settings.parents:
            message = f"{node.keyword} can only inherit those of a direct parent, and {parent!r} is none"
            around.problems.error(message, node.position)


def split_features(text: str) -> tuple[str, ...]:
    """The features of a list separated by white space, without the white space inside their parentheses.

    Raises ValueError for unbalanced parentheses and for commas between features.
    """
    features: list[list[str]] = []
    depth, quote, joined = 0, "", False
    for character in text:
        if quote or character in "\"'":
            quote = "" if quote == character else quote or character
        elif character.isspace():
            joined = joined and depth > 0
            continue
        depth += 0 if quote else (character == "(") - (character == ")")
        if depth < 0 or (character == "," and not depth and not quote):
            raise ValueError(f"unexpected {character!r} between features")
        # White space before a parenthesis and around a dot does not end a feature.
        if features and (joined or character in "(." or features[-1][-1] == "."):
            features[-1].append(character)
        else:
            features.append([character])
        joined = True
    if depth or quote:
        raise ValueError("a parenthesis or a quote is not closed")
    return tuple("".join(feature) for feature in features)


def _properties(settings: RankSettings, node: Node, around: Surroundings) -> None:
    for child in node.children:
        if child.name in settings.properties:
            message = f"rank property {child.name!r} with more than one value is not supported yet"
            around.problems.error(message, child.position)
        settings.properties[child.name] = child.text


def _strict(settings: RankSettings, node: Node, around: Surroundings) -> None:
    if node.text in ("on", "true"):
        around.problems.unsupported(node, f"rank-profile {settings.name}")


# Settings of fields


def _weight(settings: RankSettings, node: Node, around: Surroundings) -> None:
    _check_field(node, around)
    settings.weights[node.name] = _count(node, around)


def _rank(settings: RankSettings, node: Node, around: Surroundings) -> None:
    _check_field(node, around)
    for child in node.children:
        if child.keyword in ("filter", "normal"):
            settings.filters[node.name] = child.keyword == "filter"
        else:
            around.problems.unsupported(child, f"rank-profile {settings.name}")


def _rank_type(settings: RankSettings, node: Node, around: Surroundings) -> None:
    _check_field(node, around)
    if node.text != "about":
        around.problems.unsupported(node, f"rank-profile {settings.name}")


def _check_field(node: Node, around: Surroundings) -> None:
    if node.name not in around.fields:
        around.problems.error(f"{node.keyword} of a field that does not exist: {node.name!r}", node.position)


_WITHOUT_EFFECT: Final[Mapping[str, str]] = dict.fromkeys(
    ("num-threads-per-search", "min-hits-per-thread", "num-search-partitions", "termwise-limit"),
    "it tunes how a query is executed, not what it answers",
)

# The totals are over the nodes of a group, and a group is one node here.
_FIRST_PHASE: Final[Mapping[str, _Setting]] = {
    "expression": _single("first_phase", _expression),
    "keep-rank-count": _single("keep_rank_count", _count),
    "total-keep-rank-count": _single("keep_rank_count", _count),
    "rank-score-drop-limit": _single("rank_score_drop_limit", _number),
}
_SECOND_PHASE: Final[Mapping[str, _Setting]] = {
    "expression": _single("second_phase", _expression),
    "rerank-count": _single("rerank_count", _count),
    "total-rerank-count": _single("rerank_count", _count),
    "rank-score-drop-limit": _single("second_phase_rank_score_drop_limit", _number),
}
_SETTINGS: Final[Mapping[str, _Setting]] = {
    "first-phase": _each(_FIRST_PHASE),
    "second-phase": _each(_SECOND_PHASE),
    "function": _function,
    "inputs": _inputs,
    "constants": _constants,
    **dict.fromkeys(FEATURE_LISTS, _features),
    "rank-properties": _properties,
    "strict": _strict,
    "ignore-default-rank-features": _single("ignore_default_rank_features", _true),
    "weight": _weight,
    "rank": _rank,
    "rank-type": _rank_type,
    "rank-profile": _inner,
}
