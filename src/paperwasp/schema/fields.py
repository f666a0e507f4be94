"""A field, from its syntax to its settings: what each of its elements says is a line in the table `_SETTINGS`.

What the settings may be together is checked in `field_checks`.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#field
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast, get_args

from paperwasp import limits
from paperwasp.document.types import BOOL, WeightedSetType, part_of, parts_of, weighted_set_of
from paperwasp.schema.data_types import RESERVED_NAMES, TypeScope, is_text
from paperwasp.schema.field_checks import Draft, check_field, check_sub_field
from paperwasp.schema.indexing import read_script
from paperwasp.schema.model import (
    AttributeSettings,
    Field,
    Hnsw,
    IndexSettings,
    Linguistics,
    Match,
    MatchSettings,
    Sorting,
    Stemming,
    SubField,
    SummaryField,
)
from paperwasp.schema.tree import INT_MAX, Problems, SchemaNode, boolean, integer, nearest, number, one_of


def summary_of(node: SchemaNode, name: str, source: str, problems: Problems) -> SummaryField:
    """Read `summary` of a field or a document summary: the field `name`, of the field `source` unless it names others.

    Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#summary
    """
    words = {child.keyword for child in node.children}
    transforms = words & {"dynamic", "tokens"}
    if len(transforms) > 1:
        problems.error(f"{node.describe()} cannot be both dynamic and tokens", node.position)
    return SummaryField(
        name=name,
        sources=values_of(node, "source") or (source,),
        dynamic="dynamic" in words,
        bolding="dynamic" not in words and any(boolean(child) for child in node.all("bolding")),
        tokens="tokens" in words,
        matched_elements_only="matched-elements-only" in words,
        select_elements_by=_feature(node, problems),
        struct_fields=values_of(node, "struct-field"),
        position=node.position,
    )


def values_of(node: SchemaNode, keyword: str) -> tuple[str, ...]:
    """The values of all elements of that keyword, each once."""
    return tuple(dict.fromkeys(value for child in node.all(keyword) for value in child.values))


def _feature(node: SchemaNode, problems: Problems) -> str:
    feature = ""
    for child in node.all("select-elements-by"):
        feature = child.text.strip()
        if not feature or " " in feature:
            problems.error("select-elements-by must name one summary feature", child.value_position)
    return feature


DISTANCE_METRICS: Final = (
    "euclidean", "angular", "dotproduct", "prenormalized-angular", "geodegrees", "hamming", "innerproduct"
)  # fmt: skip
RANK_TYPES: Final = ("identity", "about", "tags", "empty", "default")
NORMALIZINGS: Final = ("none", "codepoint", "lowercase", "accent", "all")
_LONG_MAX: Final = 2**63 - 1

_Setting = Callable[[Draft, SchemaNode, Problems], None]


def resolve_field(
    node: SchemaNode,
    scope: TypeScope,
    stemming: Stemming,
    indexes: Iterable[SchemaNode],
    problems: Problems,
    *,
    in_document: bool,
) -> tuple[Field, Draft] | None:
    """The field and its draft; None after telling `problems` why it has no type.

    `indexes` are the `index` elements outside of fields that have its name.
    """
    if node.name.lower() in RESERVED_NAMES:
        problems.error(f"{node.name!r} is reserved and cannot be the name of a field", node.position)
    elif not node.name[0].isalpha():
        problems.error(f"{node.name!r} cannot be the name of a field: it must start with a letter", node.position)
    type_ = scope.type_of(node)
    draft = Draft(node, node.name, type_ or BOOL, stemming, in_document=in_document)
    _apply_all(_SETTINGS, draft, node, problems)
    for index in indexes:
        _SETTINGS["index"](draft, index, problems)
    if type_ is None:
        return None
    _match_by_script(draft, problems)
    check_field(draft, problems)
    return _field(draft), draft


def _match_by_script(draft: Draft, problems: Problems) -> None:
    """Where `match` says no mode, `exact` and `ngram` in the script do."""
    if draft.script is None or draft.match is not None:
        return
    for expression in draft.script.tree.walk():
        if expression.keyword == "exact":
            draft.match = "exact"
        elif expression.keyword == "ngram":
            draft.match = "gram"
            size = expression.arguments[0]
            if size.isdecimal() and 0 < int(size[:10]) <= INT_MAX:
                draft.match_settings["gram_size"] = int(size[:10])
            else:
                problems.error(f"{size} is no size of grams", draft.script.place(expression))


def stemming_of(node: SchemaNode, problems: Problems) -> Stemming:
    """The stemming that a `stemming:` element names."""
    return cast(Stemming, one_of(node, get_args(Stemming), problems, "best"))


def _apply_all(settings: Mapping[str, _Setting], draft: Draft, node: SchemaNode, problems: Problems) -> None:
    for child in node.children:
        if setting := settings.get(child.keyword):
            setting(draft, child, problems)
        else:
            problems.without_effect(child, _WITHOUT_EFFECT[child.keyword])


def _each(settings: Mapping[str, _Setting]) -> _Setting:
    """A setting that is a block of settings."""

    def apply(draft: Draft, node: SchemaNode, problems: Problems) -> None:
        draft.places.setdefault(node.keyword, node)
        _apply_all(settings, draft, node, problems)

    return apply


def _own(settings: Mapping[str, _Setting], what: str) -> _Setting:
    """As `_each`, for a block that may have a name: under another than the field's, it has no effect any more."""
    apply = _each(settings)

    def apply_own(draft: Draft, node: SchemaNode, problems: Problems) -> None:
        if node.name in ("", draft.name, draft.name.rpartition(".")[2]):
            apply(draft, node, problems)
        else:
            message = f"{node.describe()} of {draft.described} has no effect: {what} of another name is deprecated"
            problems.warn(f"{message}, define a field of that name outside the document", node.position)

    return apply_own


def _set(group: str, name: str, convert: Callable[[SchemaNode, Problems], object]) -> _Setting:
    """Sets `name` in the draft's group of settings (`attribute`, `index`, …)."""

    def apply(draft: Draft, node: SchemaNode, problems: Problems) -> None:
        getattr(draft, group)[name] = convert(node, problems)
        draft.places[node.keyword] = node

    return apply


def _true(group: str, name: str) -> _Setting:
    return _set(group, name, lambda node, problems: True)


def _whole(group: str, name: str, least: int = 0, most: int = INT_MAX) -> _Setting:
    return _set(group, name, lambda node, problems: integer(node, problems, least, most))


def _nothing(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    """The element says what is so anyway."""


# indexing, index, attribute


def _indexing(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    if "indexing" in draft.places:
        problems.error(f"{draft.described} has indexing twice", node.position)
        return
    draft.places["indexing"] = node
    draft.script = read_script(node, draft.name, in_document=draft.in_document, problems=problems)
    if draft.script:
        draft.outputs = frozenset(draft.script.outputs)


def _stemming(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.stemming = stemming_of(node, problems)


def _hnsw(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.places["hnsw"] = node
    _apply_all(_HNSW, draft, node, problems)


def _quantization(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.places["quantization"] = node
    for child in node.children:
        integer(child, problems, least=1)
    problems.without_effect(node, "vectors are kept as exactly as their type says")


def _alias(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    if draft.aliases.setdefault(node.text, node.name or draft.name) != (node.name or draft.name):
        problems.error(f"{draft.described} has the alias {node.text!r} twice", node.value_position)
    draft.places["alias"] = node


# match, rank, sorting, dictionary


def _match(value: Match) -> _Setting:
    def apply(draft: Draft, node: SchemaNode, problems: Problems) -> None:
        if draft.match not in (None, value):
            problems.error(f"{draft.described} cannot match both {draft.match} and {value}", node.position)
        draft.match = value

    return apply


def _set_cased(value: bool) -> _Setting:
    def apply(draft: Draft, node: SchemaNode, problems: Problems) -> None:
        draft.cased = value

    return apply


def _algorithm(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.match_settings["algorithm"] = node.keyword
    draft.places["algorithm"] = node


def _rank(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.rank.add(node.keyword)


def _map_setting(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    """Vespa: SchemaParser.jj, 2026."""
    problems.without_effect(node, "keys and values that are attributes are searched as their struct-field says")


def _rank_type(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    word = node.text.lower()
    if word not in RANK_TYPES:
        message = f"unknown rank-type {node.text!r}{nearest(word, RANK_TYPES)}"
        problems.error(message, node.value_position)
    elif node.name not in ("", draft.name):
        problems.without_effect(node, f"there is no index {node.name!r}")
    else:
        draft.rank_type = word


def _order(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.sorting["order"] = node.keyword if node.keyword != "order" else node.text


def _sorting(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.places["sorting"] = node
    _apply_all(_SORTING, draft, node, problems)


def _dictionary(word: str) -> _Setting:
    def apply(draft: Draft, node: SchemaNode, problems: Problems) -> None:
        draft.dictionary.add(word)

    return apply


def _normalizing(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.index["normalizing"] = one_of(node, NORMALIZINGS, problems, "all") in ("accent", "all")


def _weight(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.weight = integer(node, problems)


def _id(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    value = integer(node, problems, least=1)
    if 100 <= value <= 127:
        problems.error(f"the id of {draft.described} must be less than 100 or more than 127", node.value_position)
    draft.id, draft.places["id"] = value, node
    problems.without_effect(node, "numeric field ids are chosen internally")


def _query_command(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.query_commands.append(node.text)
    draft.places["query-command"] = node


def _profile(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    if node.values:
        draft.linguistics = Linguistics(node.text, node.text)
        return
    profiles = {child.keyword: child.text for child in node.children}
    draft.linguistics = Linguistics(profiles.get("index", ""), profiles.get("search", profiles.get("index", "")))


def _weighted_set(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    if not isinstance(draft.type, WeightedSetType):
        problems.error(f"{draft.described} is no weightedset", node.position)
        return
    words = {child.keyword for child in node.children}
    draft.type = weighted_set_of(
        draft.type.key,
        create_if_nonexistent="create-if-nonexistent" in words or draft.type.create_if_nonexistent,
        remove_if_zero="remove-if-zero" in words or draft.type.remove_if_zero,
    )


# summary and bolding


def _bolding(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.bolding = boolean(node)
    draft.places["bolding"] = node


def _summary(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    name = node.name or draft.name
    if node.type and node.type != draft.node.type:
        message = f"the type of {node.describe()} of {draft.described} is ignored: a summary has that of its source"
        problems.warn(message, node.position)
    draft.add_summary(summary_of(node, name, draft.name, problems), values_of(node, "to"))


def _summary_to(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    draft.add_summary(None, node.values, node.name or draft.name)


# struct-field


def _struct_field(draft: Draft, node: SchemaNode, problems: Problems) -> None:
    type_ = part_of(draft.type, node.name)
    path = f"{draft.name}.{node.name}"
    if node.name.rpartition(".")[2].lower() in RESERVED_NAMES:
        problems.error(f"{node.name!r} is reserved and cannot be the name of a field", node.position)
    elif path in draft.sub_drafts:
        problems.error(f"struct-field {node.name} of {draft.described} is defined twice", node.position)
    elif type_ is None:
        hint = nearest(node.name, parts_of(draft.type))
        problems.error(f"{draft.described} of type {draft.type} has no part {node.name!r}{hint}", node.position)
    else:
        sub = Draft(node, path, type_, draft.stemming, in_document=draft.in_document)
        _apply_all(_SETTINGS, sub, node, problems)
        check_sub_field(draft, sub, problems)
        draft.sub_drafts[path] = sub
        draft.sub_drafts |= sub.sub_drafts


_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "header": "it has no meaning any more",
    "body": "it has no meaning any more",
    "enable-bit-vectors": "posting lists choose their own representation",
}

_MATCH: Final[Mapping[str, _Setting]] = {
    "text": _match("text"),
    "word": _match("word"),
    "exact": _match("exact"),
    "gram": _match("gram"),
    "cased": _set_cased(True),
    "uncased": _set_cased(False),
    **dict.fromkeys(("prefix", "substring", "suffix"), _algorithm),
    "gram-size": _whole("match_settings", "gram_size", least=1),
    "exact-terminator": _set("match_settings", "exact_terminator", lambda node, problems: node.text),
    "max-length": _whole("match_settings", "max_length", least=1),
    "max-occurrences": _whole("match_settings", "max_occurrences", least=1),
    "max-token-length": _whole("match_settings", "max_token_length", least=1),
}
_INDEX: Final[Mapping[str, _Setting]] = {
    "enable-bm25": _true("index", "enable_bm25"),
    "prefix": _true("index", "prefix"),
    "stemming": _stemming,
    "alias": _alias,
    "arity": _whole("index", "arity"),
    "lower-bound": _whole("index", "lower_bound", -_LONG_MAX - 1, _LONG_MAX),
    "upper-bound": _whole("index", "upper_bound", -_LONG_MAX - 1, _LONG_MAX),
    "dense-posting-list-threshold": _set("index", "dense_posting_list_threshold", number),
    "hnsw": _hnsw,
}
_HNSW: Final[Mapping[str, _Setting]] = {
    "max-links-per-node": _whole("hnsw", "max_links_per_node", 1, limits.GRAPH_LINKS),
    "neighbors-to-explore-at-insert": _whole("hnsw", "neighbors_to_explore_at_insert", least=1),
    "multi-threaded-indexing": _set("hnsw", "multi_threaded_indexing", lambda node, problems: boolean(node)),
}
_SORTING: Final[Mapping[str, _Setting]] = {
    **dict.fromkeys(("ascending", "descending", "order"), _order),
    "function": _set("sorting", "function", lambda node, problems: node.text),
    "strength": _set("sorting", "strength", lambda node, problems: node.text),
    "locale": _set("sorting", "locale", lambda node, problems: node.text),
}
_ATTRIBUTE: Final[Mapping[str, _Setting]] = {
    "fast-search": _true("attribute", "fast_search"),
    "fast-rank": _true("attribute", "fast_rank"),
    "fast-access": _true("attribute", "fast_access"),
    "paged": _true("attribute", "paged"),
    "mutable": _true("attribute", "mutable"),
    "enable-only-bit-vector": _true("attribute", "enable_only_bit_vector"),
    "distance-metric": _set(
        "attribute",
        "distance_metric",
        lambda node, problems: one_of(node, DISTANCE_METRICS, problems, DISTANCE_METRICS[0]),
    ),
    "quantization": _quantization,
    "sorting": _sorting,
    "alias": _alias,
}
_SETTINGS: Final[Mapping[str, _Setting]] = {
    "indexing": _indexing,
    "index": _own(_INDEX, "an index"),
    "attribute": _own(_ATTRIBUTE, "an attribute"),
    "match": _each(_MATCH),
    "rank": _each(dict.fromkeys(("filter", "normal", "literal"), _rank)),
    "dictionary": _each({word: _dictionary(word) for word in ("hash", "btree", "cased", "uncased")}),
    "sorting": _sorting,
    "stemming": _stemming,
    "normalizing": _normalizing,
    "rank-type": _rank_type,
    "weight": _weight,
    "bolding": _bolding,
    "summary": _summary,
    "summary-to": _summary_to,
    "alias": _alias,
    "query-command": _query_command,
    "linguistics": _each({"profile": _profile}),
    "map": _each({"fast-search": _map_setting}),
    "weightedset": _weighted_set,
    "struct-field": _struct_field,
    "id": _id,
}


# The result


def _field(draft: Draft) -> Field:
    text = is_text(draft.type)
    return Field(
        name=draft.name,
        type=draft.type,
        index=_index(draft),
        attribute=_attribute(draft),
        summary=bool(draft.summaries) or "summary" in draft.outputs,
        match=_match_mode(draft) if text else None,
        bolding=draft.bolding,
        rank_filter=_is_filter(draft),
        weight=draft.weight,
        indexing=" ".join(draft.places["indexing"].text.split()) if "indexing" in draft.places else "",
        in_document=draft.in_document,
        position=draft.node.position,
        cased=text and draft.cased is True,
        script=draft.script.resolve() if draft.script else None,
        match_settings=MatchSettings(**draft.match_settings),
        rank_type=draft.rank_type,
        rank_literal="literal" in draft.rank,
        normal_rank="normal" in draft.rank,
        linguistics=draft.linguistics,
        sub_fields=MappingProxyType({sub.name.partition(".")[2]: _sub_field(sub) for sub in draft.sub_drafts.values()}),
        query_commands=tuple(draft.query_commands),
        aliases=MappingProxyType(draft.aliases),
        summaries=tuple(draft.summaries.values()),
    )


def _sub_field(draft: Draft) -> SubField:
    return SubField(
        name=draft.name.partition(".")[2],
        type=draft.type,
        index=_index(draft),
        attribute=_attribute(draft),
        summary="summary" in draft.outputs,
        match=_match_mode(draft) if is_text(draft.type) else None,
        match_settings=MatchSettings(**draft.match_settings),
        rank_filter=_is_filter(draft),
        script=draft.script.resolve() if draft.script else None,
        position=draft.node.position,
    )


def _index(draft: Draft) -> IndexSettings | None:
    """The settings of the index of a field; None: it has none. Those of predicate fields are the attribute's."""
    if "index" not in draft.outputs and "arity" not in draft.index:
        return None
    settings: dict[str, Any] = {"normalizing": True, **draft.index}
    if draft.match in ("word", "exact", "gram"):
        # One word is matched as it is: Vespa neither stems it nor removes its accents. Nor are grams stemmed.
        settings["normalizing"] = False
        return IndexSettings(stemming="none", **settings)
    hnsw = Hnsw(**draft.hnsw) if draft.is_tensor else None
    return IndexSettings(stemming=draft.stemming, hnsw=hnsw, **settings)


def _attribute(draft: Draft) -> AttributeSettings | None:
    if "attribute" not in draft.outputs:
        return None
    return AttributeSettings(
        cased=is_text(draft.type) and draft.cased is True,
        hashed="hash" in draft.dictionary,
        ordered="btree" in draft.dictionary or "hash" not in draft.dictionary,
        sorting=Sorting(**draft.sorting) if draft.sorting else None,
        **draft.attribute,
    )


def _is_filter(draft: Draft) -> bool:
    """`normal` wins over `filter`, in whatever order they come."""
    if "normal" in draft.rank:
        return False
    return "filter" in draft.rank or (draft.match == "exact" and is_text(draft.type))


def _match_mode(draft: Draft) -> Match | None:
    if draft.match or draft.cased is None:
        return draft.match
    return "cased" if draft.cased else "uncased"
