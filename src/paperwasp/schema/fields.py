"""A field of a document, from its syntax to its settings.

`_SETTINGS` is the list of what a field may say and paperwasp executes; what is in neither that table nor
`_WITHOUT_EFFECT` is refused by name.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#field
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, cast, get_args

from paperwasp.document.types import BOOL, DataType
from paperwasp.errors import Position
from paperwasp.schema.data_types import data_type, innermost, is_number, is_text
from paperwasp.schema.model import AttributeSettings, Field, IndexSettings, Match, Stemming
from paperwasp.schema.problems import Problems
from paperwasp.schema.tree import Node

RESERVED_NAMES: Final = frozenset(
    {"attribute", "case", "documentid", "else", "host", "if", "index", "index_url", "position", "relevancy"}
    | {"sddocname", "select_input", "split_foreach", "summary", "switch", "tokenize"}
)
"""Field names that Vespa refuses, in any case of letters."""

_OUTPUTS: Final = ("summary", "index", "attribute")


@dataclass(slots=True)
class _Draft:
    """A field in the making: what its elements said, before they are checked against each other."""

    node: Node
    type: DataType
    stemming: Stemming
    outputs: frozenset[str] = frozenset()
    indexing: str = ""
    match: Match | None = None
    cased: bool | None = None
    normalizing: bool = True
    enable_bm25: bool = False
    fast_search: bool = False
    fast_rank: bool = False
    bolding: bool = False
    summary: bool = False
    rank: str = ""
    weight: int = 100
    attribute_node: Node | None = None
    index_node: Node | None = None
    match_node: Node | None = None
    rank_node: Node | None = None
    bolding_node: Node | None = None
    dictionary_node: Node | None = None


_Setting = Callable[[_Draft, Node, Problems], None]


def resolve_field(node: Node, structs: Collection[str], stemming: Stemming, problems: Problems) -> Field | None:
    """The field, or None after telling `problems` why it has no type."""
    if node.name.lower() in RESERVED_NAMES:
        problems.error(f"{node.name!r} is reserved and cannot be the name of a field", node.position)
    type_ = data_type(node, structs, problems)
    draft = _Draft(node, type_ or BOOL, stemming)
    for child in node.children:
        _apply(_SETTINGS, draft, child, problems)
    if type_ is None:
        return None
    _check(draft, problems)
    return _field(draft)


def stemming_of(node: Node, problems: Problems) -> Stemming:
    """The stemming that a `stemming:` element names."""
    if node.text in get_args(Stemming):
        return cast(Stemming, node.text)
    problems.error(_unknown_word("stemming", node.text, get_args(Stemming)), node.value_position)
    return "best"


def _apply(settings: Mapping[str, _Setting], draft: _Draft, node: Node, problems: Problems) -> None:
    if setting := settings.get(node.keyword):
        setting(draft, node, problems)
    elif why := _WITHOUT_EFFECT.get(node.keyword):
        problems.without_effect(node, why)
    else:
        problems.unsupported(node, draft.node.describe())


def _each(settings: Mapping[str, _Setting], remember: str = "") -> _Setting:
    """A setting that is a block of settings; the block itself is kept in the draft's `remember`."""

    def apply(draft: _Draft, node: Node, problems: Problems) -> None:
        if node.name not in ("", draft.node.name):
            problems.error(f"{node.describe()} under another name than the field's is not supported yet", node.position)
            return
        if remember:
            setattr(draft, remember, node)
        for child in node.children:
            _apply(settings, draft, child, problems)

    return apply


def _flag(name: str, value: object = True) -> _Setting:
    def apply(draft: _Draft, node: Node, problems: Problems) -> None:
        setattr(draft, name, value)

    return apply


def _nothing(draft: _Draft, node: Node, problems: Problems) -> None:
    """The element says what is so anyway."""


# indexing


def _indexing(draft: _Draft, node: Node, problems: Problems) -> None:
    draft.indexing = " ".join(node.text.split())
    statements = [statement for statement in node.text.strip("{} \n\t\r").split(";") if statement.strip()]
    if not statements:
        problems.error(f"the indexing of {draft.node.describe()} is empty", node.value_position)
    for statement in statements:
        for expression in statement.split("|"):
            _output(draft, expression.split(), node.value_position, problems)


def _output(draft: _Draft, words: list[str], position: Position | None, problems: Problems) -> None:
    """Takes one output expression into account: `summary`, `index` or `attribute`, with no name or the field's own."""
    own = draft.node.name
    if words and words[0] in _OUTPUTS and words[1:] in ([], [own]):
        draft.outputs |= {words[0]}
    elif not words:
        problems.error(f"the indexing of {draft.node.describe()} has nothing beside a '|'", position)
    else:
        what = " ".join(words)
        problems.error(f"the indexing expression {what!r} of {draft.node.describe()} is not supported yet", position)


# match, stemming, normalizing, rank


def _match(value: Match) -> _Setting:
    def apply(draft: _Draft, node: Node, problems: Problems) -> None:
        if draft.match not in (None, value):
            problems.error(f"{draft.node.describe()} cannot match both {draft.match} and {value}", node.position)
        draft.match = value

    return apply


def _stemming(draft: _Draft, node: Node, problems: Problems) -> None:
    draft.stemming = stemming_of(node, problems)


def _normalizing(draft: _Draft, node: Node, problems: Problems) -> None:
    if node.text == "none":
        draft.normalizing = False
    else:
        problems.error(f"normalizing: {node.text} is not supported yet", node.value_position)


def _rank_type(draft: _Draft, node: Node, problems: Problems) -> None:
    if node.text != "about" or node.name not in ("", draft.node.name):
        problems.unsupported(node, draft.node.describe())


def _rank_filter(draft: _Draft, node: Node, problems: Problems) -> None:
    draft.rank = draft.rank or "filter"  # normal wins over filter, in whatever order they come


def _weight(draft: _Draft, node: Node, problems: Problems) -> None:
    draft.weight = int(node.text.rstrip("L"))
    if draft.weight < 0:
        problems.error(f"the weight of {draft.node.describe()} is negative", node.value_position)


# summary and bolding


def _bolding(draft: _Draft, node: Node, problems: Problems) -> None:
    draft.bolding = node.text in ("on", "true")
    draft.bolding_node = node


def _summary(draft: _Draft, node: Node, problems: Problems) -> None:
    if node.type not in ("", draft.node.type):
        problems.error(f"a summary of another type than {draft.node.describe()} is not supported yet", node.position)
    _each(_SUMMARY)(draft, node, problems)
    draft.summary = True


def _source(draft: _Draft, node: Node, problems: Problems) -> None:
    if node.values != (draft.node.name,):
        problems.unsupported(node, draft.node.describe())


# dictionary


def _dictionary_cased(draft: _Draft, node: Node, problems: Problems) -> None:
    draft.dictionary_node = node


_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "id": "numeric field ids are chosen internally",
    "header": "it has no meaning any more",
    "body": "it has no meaning any more",
    "fast-access": "every attribute is in memory on its node",
    "enable-bit-vectors": "posting lists choose their own representation",
    "btree": "there is one kind of dictionary",
    "hash": "there is one kind of dictionary",
    "uncased": "whether an attribute minds case follows from its match setting",
    "prefix": "attributes can always be searched by prefix, where the query asks for it",
}

_MATCH: Final[Mapping[str, _Setting]] = {
    "text": _match("text"),
    "word": _match("word"),
    "exact": _match("exact"),
    "cased": _flag("cased"),
    "uncased": _flag("cased", False),
}
_INDEX: Final[Mapping[str, _Setting]] = {"enable-bm25": _flag("enable_bm25"), "stemming": _stemming}
_ATTRIBUTE: Final[Mapping[str, _Setting]] = {"fast-search": _flag("fast_search"), "fast-rank": _flag("fast_rank")}
_RANK: Final[Mapping[str, _Setting]] = {"filter": _rank_filter, "normal": _flag("rank", "normal")}
_SUMMARY: Final[Mapping[str, _Setting]] = {
    "full": _nothing,
    "static": _nothing,
    "bolding": _bolding,
    "source": _source,
}
_SETTINGS: Final[Mapping[str, _Setting]] = {
    "indexing": _indexing,
    "index": _each(_INDEX, "index_node"),
    "attribute": _each(_ATTRIBUTE, "attribute_node"),
    "match": _each(_MATCH, "match_node"),
    "rank": _each(_RANK, "rank_node"),
    "dictionary": _each({"cased": _dictionary_cased}),
    "stemming": _stemming,
    "normalizing": _normalizing,
    "rank-type": _rank_type,
    "weight": _weight,
    "bolding": _bolding,
    "summary": _summary,
}


# Checks of one setting against another, and the result


def _check(draft: _Draft, problems: Problems) -> None:
    name, position = draft.node.describe(), draft.node.position
    if "index" in draft.outputs and not is_text(draft.type):
        _index_of_other_type(draft, problems)
    if "attribute" in draft.outputs and innermost(draft.type) == BOOL and draft.type != BOOL:
        problems.error(f"{name} cannot be an attribute: only single bools can", position)
    if draft.attribute_node and "attribute" not in draft.outputs:
        problems.error(
            f"{name} has attribute settings, but its indexing makes no attribute", draft.attribute_node.position
        )
    if draft.index_node and "index" not in draft.outputs:
        problems.without_effect(draft.index_node, f"{name} has no index")
    for node in (draft.match_node, draft.rank_node):
        if node and not draft.outputs & {"index", "attribute"}:
            problems.error(f"{name} has {node.keyword} settings, but neither an index nor an attribute", node.position)
    if draft.match_node and not is_text(draft.type):
        problems.without_effect(draft.match_node, f"{name} is not text")
    if draft.fast_rank and draft.attribute_node:
        problems.without_effect(draft.attribute_node, f"fast-rank is for tensors, and {name} is none")
    if draft.dictionary_node and draft.cased is not True:
        problems.error(f"{name} has a cased dictionary, but does not say match: cased", draft.dictionary_node.position)
    _check_bolding(draft, problems)


def _index_of_other_type(draft: _Draft, problems: Problems) -> None:
    """Does as Vespa does with an index of numbers: it becomes an attribute, with a warning."""
    position = draft.node.position
    if not is_number(draft.type):
        problems.error(f"{draft.node.describe()} cannot have an index: its type is {draft.type}", position)
        return
    draft.outputs = (draft.outputs - {"index"}) | {"attribute"}
    message = f"{draft.node.describe()} is an attribute instead of an index, as its type is {draft.type}"
    problems.note(message, position)


def _check_bolding(draft: _Draft, problems: Problems) -> None:
    if draft.bolding and draft.bolding_node and not (is_text(draft.type) and "index" in draft.outputs):
        message = f"{draft.node.describe()} cannot have bolding: that is for strings with an index"
        problems.error(message, draft.bolding_node.position)


def _field(draft: _Draft) -> Field:
    text = is_text(draft.type)
    whole = draft.match in ("word", "exact")
    index = IndexSettings(
        # One word is matched as it is: Vespa neither stems it nor removes its accents.
        stemming="none" if whole else draft.stemming,
        normalizing=draft.normalizing and not whole,
        enable_bm25=draft.enable_bm25,
    )
    attribute = AttributeSettings(draft.fast_search, draft.fast_rank, cased=text and draft.cased is True)
    return Field(
        name=draft.node.name,
        type=draft.type,
        index=index if "index" in draft.outputs else None,
        attribute=attribute if "attribute" in draft.outputs else None,
        summary=draft.summary or "summary" in draft.outputs,
        match=_match_mode(draft) if text else None,
        bolding=draft.bolding,
        rank_filter=draft.rank == "filter" or (draft.rank == "" and draft.match == "exact" and text),
        weight=draft.weight,
        indexing=draft.indexing,
        position=draft.node.position,
        cased=text and draft.cased is True,
    )


def _match_mode(draft: _Draft) -> Match | None:
    if draft.match or draft.cased is None:
        return draft.match
    return "cased" if draft.cased else "uncased"


def _unknown_word(what: str, word: str, words: Collection[str]) -> str:
    nearest = get_close_matches(word, words, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(words)}"
    return f"unknown {what} {word!r}{hint}"
