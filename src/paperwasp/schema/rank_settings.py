"""Reads the settings of one rank profile itself from its syntax; inheritance comes after, in `rank_profiles`.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#rank-profile
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, Literal, cast

from msgspec import Struct, field

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import PartlyCompared
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.errors import LanguageError, Position
from paperwasp.schema.fields import RANK_TYPES
from paperwasp.schema.model import Constant, Diversity, Field, Function, Input, MatchPhase, Mutation, OnnxModel
from paperwasp.schema.tree import Problems, SchemaNode, boolean, integer, nearest, number
from paperwasp.text.parsing.tokens import position_of

# Constants and ONNX models, of a schema or of a rank profile. Whether their files are there is checked elsewhere.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#constant, #constants, #onnx-model


_FILE = "file:"


def schema_constant(node: SchemaNode, problems: Problems) -> Constant | None:
    """The constant of a `constant name { }` block; None after telling `problems` why there is none."""
    elements = {child.keyword: child for child in node.children}
    if "type" not in elements:
        problems.error(f"constant {node.name} must have a type", node.position)
    if "file" not in elements and "uri" not in elements:
        problems.error(f"constant {node.name} must have a file", node.position)
    type_ = _tensor(elements["type"], elements["type"].text, problems) if "type" in elements else None
    if type_ is None:
        return None
    file, uri = (elements[word].text if word in elements else "" for word in ("file", "uri"))
    return Constant(node.name, type_, file=file, uri=uri, position=node.position)


def profile_constant(node: SchemaNode, problems: Problems) -> Constant | None:
    """The constant of a line of `constants { }`; None after telling `problems` why there is none."""
    if not node.values:
        problems.error(f"constant {node.name} has no value", node.position)
        return None
    type_ = _declared_type(node, "constant", problems)
    if type_ is None:
        return None
    if node.text.startswith(_FILE):
        path = node.text.removeprefix(_FILE).strip()
        return Constant(node.name, type_, file=path, position=node.position)
    text = _literal(node, type_, "constant", problems)
    return None if text is None else Constant(node.name, type_, text, position=node.position)


def profile_input(node: SchemaNode, problems: Problems) -> Input | None:
    """The input of a line of `inputs { }`; None after telling `problems` why there is none."""
    if node.type == "string":
        return Input(None, " ".join(node.text.split()), node.position)
    type_ = _declared_type(node, "input", problems)
    if type_ is None:
        return None
    if not node.values:
        return Input(type_, position=node.position)
    text = _literal(node, type_, "input", problems)
    return None if text is None else Input(type_, text, node.position)


def onnx_model(node: SchemaNode, problems: Problems) -> OnnxModel:
    """The model of an `onnx-model name { }` block."""
    elements = {child.keyword: child for child in node.children}
    if "file" not in elements and "uri" not in elements:
        problems.error(f"onnx-model {node.name} must have a file", node.position)
    file, uri, mode = (elements[word].text if word in elements else "" for word in ("file", "uri", "execution-mode"))
    device, intra, inter = (
        integer(elements[word], problems) if word in elements else None
        for word in ("gpu-device", "intraop-threads", "interop-threads")
    )
    return OnnxModel(
        name=node.name,
        file=file,
        uri=uri,
        inputs=_bindings(node, "input"),
        outputs=_bindings(node, "output"),
        gpu_device=device,
        intraop_threads=intra,
        interop_threads=inter,
        execution_mode=mode,
        optimizes="optimize-model" not in elements or boolean(elements["optimize-model"]),
        position=node.position,
    )


def _bindings(node: SchemaNode, keyword: str) -> Mapping[str, str]:
    return MappingProxyType({child.name: child.text.strip() for child in node.all(keyword)})


def _declared_type(node: SchemaNode, what: str, problems: Problems) -> TensorType | None:
    if node.type in ("float", "long"):
        problems.warn(f"{what} {node.name} has type double: there is no {node.type}", node.position)
    if node.type == "string":
        problems.error(f"{what} {node.name} cannot be a string", node.position)
        return None
    return _tensor(node, node.type, problems) if node.type.startswith("tensor") else NUMBER


def _tensor(node: SchemaNode, text: str, problems: Problems) -> TensorType | None:
    try:
        return TensorType.parse(text)
    except ValueError as error:
        problems.error(f"the type of {node.describe()}: {error}", node.position)
        return None


def _literal(node: SchemaNode, type_: TensorType, what: str, problems: Problems) -> str | None:
    """The value as text, a number in its shortest form; None after telling `problems` that it is none of the type."""
    if node.text.startswith(("{", "[")):
        if not type_.is_number:
            return " ".join(node.text.split())
        problems.error(f"the value of {what} {node.name} is not a number: {node.text!r}", node.value_position)
        return None
    try:
        value = float(node.text.rstrip("L"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problems.error(f"the value of {what} {node.name} is not a number: {node.text!r}", node.value_position)
    elif not type_.is_number:
        problems.error(f"{what} {node.name} of type {type_} cannot be a number", node.value_position)
    else:
        return repr(value)
    return None


EXPRESSION_SUFFIX: Final = ".expression"
FEATURE_LISTS: Final = ("match-features", "summary-features", "rank-features", "sort-features")
_MUTATION: Final = compile_later(r"\s*(\w+)\s*(\+=|-=|=)\s*(-?\d+(?:\.\d+)?)\s*;?\s*")


class Text(PartlyCompared, frozen=True):
    """Text of another language, and where it starts. Equal texts are equal wherever they are."""

    UNCOMPARED: ClassVar = frozenset({"position"})

    text: str
    position: Position | None = None


class RankSettings(Struct):
    """A rank profile's own settings or, after inheritance, its effective ones. What is not set is absent."""

    name: str
    node: SchemaNode | None = None
    parents: tuple[str, ...] = ()
    """Full names of the profiles that it inherits."""
    single: dict[str, object] = field(default_factory=dict)
    """Name → value, for the settings that have one value; mostly names of `RankProfile`."""
    functions: dict[str, Function] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)
    onnx_models: dict[str, OnnxModel] = field(default_factory=dict)
    features: dict[str, dict[str, None]] = field(default_factory=dict)
    """Keyword of FEATURE_LISTS → features, in order and each once."""
    feature_positions: dict[str, Position] = field(default_factory=dict)
    inherited_features: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Keyword of FEATURE_LISTS → the parents whose features come before those of this profile."""
    properties: dict[str, list[str]] = field(default_factory=dict)
    tuning: dict[str, float] = field(default_factory=dict)
    mutations: list[Mutation] = field(default_factory=list)
    weights: dict[str, int] = field(default_factory=dict)
    filters: dict[str, bool] = field(default_factory=dict)
    """Field → whether it is a filter, whatever the field itself says."""
    filter_thresholds: dict[str, float] = field(default_factory=dict)
    element_gaps: dict[str, float] = field(default_factory=dict)
    rank_types: dict[str, str] = field(default_factory=dict)
    is_default: bool = False
    """Whether it is the profile `default` or inherits it; the weights of fields count in these only."""

    @property
    def size(self) -> int:
        """How many settings there are."""
        named = len(self.functions) + len(self.constants) + len(self.inputs) + len(self.properties)
        of_fields = len(self.weights) + len(self.filters) + len(self.rank_types) + len(self.mutations)
        return 1 + named + of_fields + sum(len(features) for features in self.features.values())

    @property
    def has_field_settings(self) -> bool:
        """Whether it says other of fields than they say themselves."""
        return bool(self.weights or self.filters)

    @property
    def position(self) -> Position | None:
        return self.node.position if self.node else None


class Surroundings(Struct, frozen=True):
    """The surroundings of a rank profile, to which it may refer."""

    fields: Mapping[str, Field]
    unusable: Collection[str]
    ranking_fields: int
    """How many fields have rank settings."""
    files: Mapping[str, str]
    """Path → text of the package, for expressions in files of their own."""
    directory: str
    """Where expression files are."""
    problems: Problems

    def has_field(self, node: SchemaNode) -> bool:
        """Return whether there is the field that `node` names; report it if not, as Vespa takes that without a word."""
        if node.name in self.fields:
            return True
        if node.name not in self.unusable:
            self.problems.without_effect(node, f"there is no field {node.name!r}{nearest(node.name, self.fields)}")
        return False


_Setting = Callable[[RankSettings, SchemaNode, Surroundings], None]


def read_settings(name: str, node: SchemaNode, around: Surroundings) -> RankSettings:
    """The settings that `node` declares under the full profile name `name`."""
    settings = RankSettings(name, node, is_default=name == "default")
    _apply_all(_SETTINGS, settings, node, around)
    for function in settings.functions.keys() & settings.constants.keys():
        message = f"rank-profile {name} has both a constant and a function named {function!r}"
        around.problems.error(message, settings.functions[function].position)
    return settings


def _apply_all(table: Mapping[str, _Setting], settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    for child in node.children:
        table[child.keyword](settings, child, around)


def _each(table: Mapping[str, _Setting]) -> _Setting:
    def apply(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
        _apply_all(table, settings, node, around)

    return apply


def _single(name: str, convert: Callable[[SchemaNode, Surroundings], object]) -> _Setting:
    def apply(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
        settings.single[name] = convert(node, around)

    return apply


def _tuning(name: str = "", least: float = 0.0, most: float = math.inf) -> _Setting:
    def apply(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
        settings.tuning[name or node.keyword] = number(node, around.problems, least, most)

    return apply


def _switch(name: str = "") -> _Setting:
    def apply(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
        settings.tuning[name or node.keyword] = float(boolean(node))

    return apply


def _inner(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    """An inner profile is a profile of its own; whoever lists the profiles of the schema finds it."""


# Conversions


def _expression(node: SchemaNode, around: Surroundings) -> Text:
    """The text of an expression, from the file that it names if it does."""
    text = node.text.strip()
    if not text.startswith("file:"):
        if not text:
            around.problems.error("the expression is empty", node.value_position)
        return Text(text, node.value_position)
    name = text.removeprefix("file:").strip().removesuffix(EXPRESSION_SUFFIX) + EXPRESSION_SUFFIX
    path = f"{around.directory}{name}"
    if "/" in name:
        around.problems.error(f"an expression file cannot be in another directory: {name!r}", node.value_position)
    elif path not in around.files:
        known = [each for each in around.files if each.endswith(EXPRESSION_SUFFIX)]
        around.problems.error(f"there is no file {path!r}{nearest(path, known)}", node.value_position)
    content = around.files.get(path, "0")
    text = content.strip()
    before = content[: content.find(text)] if text else ""
    return Text(text, Position(path, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1))


def _count(node: SchemaNode, around: Surroundings) -> int:
    return integer(node, around.problems)


def _number(node: SchemaNode, around: Surroundings) -> float:
    return number(node, around.problems)


def _boolean(node: SchemaNode, around: Surroundings) -> bool:
    return boolean(node)


def _true(node: SchemaNode, around: Surroundings) -> bool:
    return True


# Settings with names


def _function(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    problems = around.problems
    if node.name in settings.functions:
        problems.error(f"function {node.name} is defined twice in rank-profile {settings.name}", node.position)
    if len(set(node.arguments)) < len(node.arguments):
        problems.error(f"function {node.name} has two parameters of one name", node.position)
    if node.name in _BUILT_IN_FUNCTIONS:
        message = f"function {node.name} of rank-profile {settings.name} has the name of a built-in function"
        problems.warn(message, node.position)
    expressions = list(node.all("expression"))
    if len(expressions) != 1:
        problems.error(f"function {node.name} must have one expression, and has {len(expressions)}", node.position)
        return
    found = _expression(expressions[0], around)
    settings.functions[node.name] = Function(
        node.name, node.arguments, found.text, node.position, node.inline, found.position
    )


def _constants(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    for child in node.children:
        if child.name in settings.constants:
            around.problems.error(f"constant {child.name} is defined twice", child.position)
        constant = profile_constant(child, around.problems)
        if constant is not None:
            settings.constants[child.name] = constant


def _inputs(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    for child in node.children:
        declared = profile_input(child, around.problems)
        if declared is None:
            continue
        known = settings.inputs.setdefault(child.name, declared)
        if (known.type, known.default) != (declared.type, declared.default):
            around.problems.error(f"input query({child.name}) is defined twice", child.position)


def _onnx_model(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    if node.name in settings.onnx_models:
        around.problems.error(f"{node.describe()} is defined twice in rank-profile {settings.name}", node.position)
    settings.onnx_models[node.name] = onnx_model(node, around.problems)


def _features(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    try:
        features = split_features(node.text)
    except ValueError as error:
        around.problems.error(f"{node.keyword}: {error}", node.value_position)
        return
    settings.features.setdefault(node.keyword, {}).update(dict.fromkeys(features))
    if node.value_position:
        settings.feature_positions.setdefault(node.keyword, node.value_position)
    if node.inherits:
        settings.inherited_features[node.keyword] = node.inherits
    for parent in node.inherits:
        if settings.node is None or parent not in settings.node.inherits:
            message = f"{node.keyword} can only inherit those of a direct parent, and {parent!r} is none"
            around.problems.error(message, node.position)


def split_features(text: str) -> tuple[str, ...]:
    """The features of a list separated by white space, without the white space inside their parentheses.

    Raises ValueError for unbalanced parentheses and for commas between features.
    """
    try:
        return tuple(feature for _, feature in find_features(text))
    except LanguageError as error:
        raise ValueError(error.bare_message) from None


def find_features(text: str, source: str = "") -> list[tuple[int, str]]:
    """The same with the index at which each feature begins. Errors: LanguageError with the place in the text."""
    features: list[tuple[int, list[str]]] = []
    depth, quote, joined, is_escaped = 0, "", False, False
    for index, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif quote and character == "\\":
            is_escaped = True
        elif quote or character in "\"'":
            quote = "" if quote == character else quote or character
        elif character.isspace():
            joined = joined and depth > 0
            continue
        depth += 0 if quote else (character == "(") - (character == ")")
        if depth < 0 or (character == "," and not depth and not quote):
            raise LanguageError(f"unexpected {character!r} between features", position_of(text, index, source))
        # White space before a parenthesis and around a dot does not end a feature.
        if features and (joined or character in "(." or features[-1][1][-1] == "."):
            features[-1][1].append(character)
        else:
            features.append((index, [character]))
        joined = True
    if depth or quote:
        raise LanguageError("a parenthesis or a quote is not closed", position_of(text, len(text), source))
    return [(start, "".join(feature)) for start, feature in features]


def _properties(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    for child in node.children:
        settings.properties.setdefault(child.name, []).append(child.text)


# Phases beside the expressions


def _match_phase(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    elements = {child.keyword: child for child in node.children}
    for word in ("attribute",) if "attribute" not in elements else ():
        around.problems.error(f"match-phase must have an {word}", node.position)
    if "max-hits" not in elements and "total-max-hits" not in elements:
        around.problems.error("match-phase must have max-hits", node.position)
    elif "max-hits" in elements and "total-max-hits" in elements:
        around.problems.error(
            "match-phase cannot have both max-hits and total-max-hits", elements["total-max-hits"].position
        )
    if "diversity" in elements:
        _diversity(settings, elements["diversity"], around)

    def value(word: str, default: float) -> float:
        return number(elements[word], around.problems, 0.0) if word in elements else default

    hits, total = (
        integer(elements[word], around.problems, 1) if word in elements else 0
        for word in ("max-hits", "total-max-hits")
    )
    settings.single["match_phase"] = MatchPhase(
        attribute=elements["attribute"].text if "attribute" in elements else "",
        order=cast(Literal["ascending", "descending"], elements["order"].text if "order" in elements else "descending"),
        max_hits=hits,
        total_max_hits=total,
        max_filter_coverage=value("max-filter-coverage", 0.2),
        evaluation_point=value("evaluation-point", 0.001),
        pre_post_filter_tipping_point=value("pre-post-filter-tipping-point", 1.0),
        position=node.position,
    )


def _diversity(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    elements = {child.keyword: child for child in node.children}
    if "attribute" not in elements:
        around.problems.error("diversity must have an attribute", node.position)
    settings.single["diversity"] = Diversity(
        attribute=elements["attribute"].text if "attribute" in elements else "",
        min_groups=integer(elements["min-groups"], around.problems, 1) if "min-groups" in elements else 1,
        cutoff_factor=number(elements["cutoff-factor"], around.problems, 1.0) if "cutoff-factor" in elements else 10.0,
        cutoff_strategy=elements["cutoff-strategy"].text if "cutoff-strategy" in elements else "loose",
    )


def _mutate(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    for child in node.children:
        found = _MUTATION.fullmatch(child.text)
        if found is None:
            message = f"{child.keyword}: expected 'attribute += number', '-=' or '=', found {child.text.strip()!r}"
            around.problems.error(message, child.value_position)
            continue
        settings.mutations.append(Mutation(child.keyword, found[1], found[2], float(found[3])))


# Settings of fields


def _weight(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    weight = _count(node, around)
    if around.has_field(node):
        settings.weights[node.name] = weight


def _rank(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    if not around.has_field(node):
        return
    for child in node.children:
        match child.keyword:
            case "filter" | "normal":
                settings.filters[node.name] = child.keyword == "filter"
            case "filter-threshold":
                settings.filter_thresholds[node.name] = number(child, around.problems, 0.0, 1.0)
            case _:
                settings.element_gaps[node.name] = _gap(child, around)


def _gap(node: SchemaNode, around: Surroundings) -> float:
    if node.text == "infinity":
        return math.inf
    if node.text.isdigit():
        return float(integer(node, around.problems))
    around.problems.error("element-gap must be a whole number or infinity", node.value_position)
    return math.inf


def _rank_type(settings: RankSettings, node: SchemaNode, around: Surroundings) -> None:
    if not around.has_field(node):
        return
    if node.text.lower() in RANK_TYPES:
        settings.rank_types[node.name] = node.text.lower()
    else:
        message = f"unknown rank-type {node.text!r}{nearest(node.text.lower(), RANK_TYPES)}"
        around.problems.error(message, node.value_position)


_BUILT_IN_FUNCTIONS: Final = frozenset(
    {"abs", "acos", "argmax", "argmin", "asin", "atan", "atan2", "avg", "bit", "cell_cast", "ceil", "concat", "cos"}
    | {"cosh", "cosine_similarity", "count", "diag", "elu", "erf", "euclidean_distance", "exp", "expand", "fabs"}
    | {"filter_subspaces", "floor", "fmod", "hamming", "if", "in", "isNan", "join", "l1_normalize", "l2_normalize"}
    | {"ldexp", "log", "log10", "map", "map_subspaces", "matmul", "max", "median", "merge", "min", "pow", "prod"}
    | {"random", "range", "reduce", "relu", "rename", "round", "sigmoid", "sign", "sin", "sinh", "softmax", "sqrt"}
    | {"square", "sum", "tan", "tanh", "tensor", "top", "unpack_bits", "xw_plus_b"}
)
"""Built-in functions, which a function of the same name hides from the expressions of its profile."""

# The totals are over the nodes of a group, and a group is one node here.
_FIRST_PHASE: Final[Mapping[str, _Setting]] = {
    "expression": _single("first_phase", _expression),
    "keep-rank-count": _single("keep_rank_count", _count),
    "total-keep-rank-count": _single("total_keep_rank_count", _count),
    "rank-score-drop-limit": _single("rank_score_drop_limit", _number),
}
_SECOND_PHASE: Final[Mapping[str, _Setting]] = {
    "expression": _single("second_phase", _expression),
    "rerank-count": _single("rerank_count", _count),
    "total-rerank-count": _single("total_rerank_count", _count),
    "rank-score-drop-limit": _single("second_phase_rank_score_drop_limit", _number),
}
_GLOBAL_PHASE: Final[Mapping[str, _Setting]] = {
    "expression": _single("global_phase", _expression),
    "rerank-count": _single("global_rerank_count", _count),
    "rank-score-drop-limit": _single("global_rank_score_drop_limit", _number),
}
_SETTINGS: Final[Mapping[str, _Setting]] = {
    "first-phase": _each(_FIRST_PHASE),
    "second-phase": _each(_SECOND_PHASE),
    "global-phase": _each(_GLOBAL_PHASE),
    "match-phase": _match_phase,
    "diversity": _diversity,
    "mutate": _mutate,
    "function": _function,
    "inputs": _inputs,
    "constants": _constants,
    "onnx-model": _onnx_model,
    **dict.fromkeys(FEATURE_LISTS, _features),
    "rank-properties": _properties,
    "strict": _single("strict", _boolean),
    "significance": _each({"use-model": _single("use_significance_model", _boolean)}),
    "ignore-default-rank-features": _single("ignore_default_rank_features", _true),
    "weight": _weight,
    "rank": _rank,
    "rank-type": _rank_type,
    "rank-profile": _inner,
    "weakand": _each(
        {
            "stopword-limit": _tuning("weakand stopword-limit", 0.0, 1.0),
            "adjust-target": _tuning("weakand adjust-target", 0.0, 1.0),
            "allow-drop-all": _switch("weakand allow-drop-all"),
        }
    ),
    **dict.fromkeys(("num-threads-per-search", "min-hits-per-thread", "num-search-partitions"), _tuning()),
    **dict.fromkeys(("termwise-limit", "post-filter-threshold", "approximate-threshold"), _tuning("", 0.0, 1.0)),
    **dict.fromkeys(("filter-first-threshold", "filter-first-exploration"), _tuning("", 0.0, 1.0)),
    **dict.fromkeys(("exploration-slack", "filter-threshold"), _tuning("", 0.0, 1.0)),
    "target-hits-max-adjustment-factor": _tuning("", 1.0),
    "prefetch-tensors": _switch(),
}
