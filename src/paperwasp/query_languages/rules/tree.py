"""A query tree that can be changed, made of one that cannot, and back.

Leaves are what conditions look at: a word, or another term, such as a range, that only `...` matches. A word of
several tokens is a branch of them (`segments`), which is a phrase, or an and, from when a rule changes it. What is no
term, such as a nearest neighbor, and what is marked as a filter, is kept out of sight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import regex

from paperwasp.base.records import replace
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.item import Annotated, Item, TermItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS, Annotations

DEFAULT_INDEX: Final = "default"
_TOKEN: Final = regex.compile(r"[\p{L}\p{N}\p{M}_]+|\p{So}")
_NUMBER: Final = regex.compile(r"-?[0-9]+(?:\.[0-9]+)?")


class QueryNode:
    """A node of the tree. `item` is what it was made of; None: a rule made it."""

    __slots__ = ("item", "parent")

    def __init__(self, item: Item | None = None) -> None:
        self.item = item
        self.parent: Branch | None = None

    def branch(self) -> Branch:
        """Return the branch that this node is in: every node but the root is in one."""
        assert self.parent is not None
        return self.parent

    def place(self) -> int:
        """Return the number of this node among those of its branch."""
        return next(number for number, node in enumerate(self.branch().children) if node is self)

    def replace_by(self, *nodes: QueryNode) -> None:
        """Put others where this node is."""
        branch, at = self.branch(), self.place()
        branch.children[at : at + 1] = nodes
        self.parent = None
        for node in nodes:
            node.parent = branch


class Unseen(QueryNode):
    """Something that no rule looks at."""

    __slots__ = ()


class Leaf(QueryNode):
    """A term. `text` is None where it is no word."""

    __slots__ = ("annotations", "forms", "index", "maker", "text")

    def __init__(
        self, index: str, text: str | None, annotations: Annotations = DEFAULT_ANNOTATIONS, item: Item | None = None
    ) -> None:
        super().__init__(item)
        self.index = index
        self.text = text
        self.annotations = annotations
        self.forms: dict[object, str] = {}
        """By speech."""
        self.maker: object = None
        """The rule that put it here, or left it here, last."""

    @property
    def written(self) -> str:
        """The term as text, as comparisons see it."""
        if self.text is not None:
            return self.text
        assert self.item is not None
        return self.item.written()


class Branch(QueryNode):
    """Nodes under an operator, named by `kind`: a key of `_MADE`, or `other`, of which `item` knows more."""

    __slots__ = ("annotations", "children", "index", "kind", "written")

    def __init__(
        self,
        kind: str,
        children: list[QueryNode],
        index: str = DEFAULT_INDEX,
        annotations: Annotations = DEFAULT_ANNOTATIONS,
        item: Item | None = None,
    ) -> None:
        super().__init__(item)
        self.kind = kind
        self.index = index
        """The index of a phrase or of segments."""
        self.annotations = annotations
        self.children = children
        self.written = tuple(children)
        """The children that it was made with."""
        for child in children:
            child.parent = self

    @property
    def is_phrase(self) -> bool:
        return self.kind in ("phrase", "segments")

    def insert(self, at: int, node: QueryNode) -> None:
        self.children.insert(at, node)
        node.parent = self

    def add(self, node: QueryNode) -> None:
        self.insert(len(self.children), node)


def root_of(item: Item) -> Branch:
    """Make the tree of an item, under a branch `root` that has one child, or none when all was taken away."""
    return Branch("root", [_node(item)])


def _node(item: Item) -> QueryNode:
    if (isinstance(item, Annotated) and item.annotations.filter) or not item.is_seen_by_rules:
        return Unseen(item)
    if isinstance(item, WordItem):
        return _word(item)
    if isinstance(item, PhraseItem):
        return Branch("phrase", list(_words(item)), item.index, item.annotations, item)
    if isinstance(item, TermItem):
        return Leaf(item.index, None, item.annotations, item)
    children = item.children_of()
    children = children[: len(children) - len(item.excluded())]
    if not children:
        return Unseen(item)
    return Branch(item.rule_kind, [_node(child) for child in children], item=item)


def _word(item: WordItem) -> QueryNode:
    tokens = _tokens(item.word)
    if len(tokens) < 2:
        return Leaf(item.index, tokens[0] if tokens else item.word, item.annotations, item)
    return Branch("segments", [Leaf(item.index, token) for token in tokens], item.index, item.annotations, item)


def _words(item: PhraseItem) -> Iterator[QueryNode]:
    for word in item.words:
        if isinstance(word, str):
            yield from (Leaf(item.index, token) for token in _tokens(word) or [word])
        else:
            yield _node(word)


def _tokens(word: str) -> list[str]:
    return [word] if _NUMBER.fullmatch(word) else _TOKEN.findall(word)


def leaves_of(node: QueryNode) -> Iterator[Leaf]:
    """Return the leaves below, left to right."""
    if isinstance(node, Leaf):
        yield node
    elif isinstance(node, Branch):
        for child in node.children:
            yield from leaves_of(child)


def item_of(root: Branch) -> Item | None:
    """Return the item of the tree as it is now, not canonical; None: nothing is left."""
    return _item(root.children[0]) if root.children else None


def _item(node: QueryNode) -> Item | None:
    if isinstance(node, Leaf):
        return node.item or WordItem(node.index, node.text or "", annotations=node.annotations)
    if not isinstance(node, Branch):
        return node.item
    children = [item for item in map(_item, node.children) if item is not None]
    unchanged = len(node.children) == len(node.written) and all(map(_same, node.children, node.written))
    if node.is_phrase:
        return node.item if unchanged and node.item is not None else _phrase(node, children)
    if not children:
        return None
    if node.item is None or node.kind in ("and", "or", "rank", "not"):
        return _MADE[node.kind](tuple(children))
    return node.item.with_children((*children, *node.item.excluded()))


def _same(one: QueryNode, other: QueryNode) -> bool:
    return one is other and isinstance(one, Leaf)


def _phrase(node: Branch, children: list[Item]) -> Item | None:
    """A phrase that a rule changed or made; of segments that ask for all of them, an and."""
    if node.kind == "segments" and node.annotations.and_segmenting:
        return AndItem(tuple(children)) if children else None
    if len(children) == 1:
        (child,) = children
        weighed = replace(node.annotations, and_segmenting=False)
        return replace(child, annotations=weighed) if isinstance(child, WordItem) else child
    words = [
        item.word if isinstance(item, WordItem) and item.annotations == DEFAULT_ANNOTATIONS else item
        for item in children
    ]
    return PhraseItem(node.index, tuple(words), annotations=node.annotations) if words else None


_MADE: Final[Mapping[str, Callable[[tuple[Item, ...]], Item]]] = {
    "and": AndItem,
    "or": OrItem,
    "weakAnd": WeakAndItem,
    "rank": RankItem,
    "not": NotItem,
    "equiv": EquivItem,
}
"""Kind of branch → makes its item."""
_HEADS: Final = {"and": "AND", "or": "OR", "weakAnd": "WEAKAND", "rank": "RANK", "equiv": "EQUIV"}


def described(node: QueryNode) -> str:
    """Write the tree in Vespa's notation: `AND a (OR title:b "c d"!50)`, `+a -b`, `|filter`."""
    if isinstance(node, Leaf):
        return f"{_prefix(node.index)}{node.written}{_weight(node.annotations)}"
    if not isinstance(node, Branch):
        return _described_unseen(node.item)
    if node.kind == "root":
        return described(node.children[0]) if node.children else ""
    if node.is_phrase:
        words = " ".join(child.written if isinstance(child, Leaf) else described(child) for child in node.children)
        return f'{_prefix(node.index)}"{words}"{_weight(node.annotations)}'
    if node.kind == "not":
        return _inside(node, " ".join(_with_signs(node.children)))
    head = _HEADS.get(node.kind)
    if head is None:
        assert node.item is not None
        head = node.item.kind_of()
    return _inside(node, " ".join([head, *map(described, node.children)]))


def _inside(node: QueryNode, text: str) -> str:
    return text if node.parent is None or node.parent.kind == "root" else f"({text})"


def _with_signs(children: list[QueryNode]) -> Iterator[str]:
    for number, child in enumerate(children):
        if number or not isinstance(child.item, TrueItem):
            yield f"{'-' if number else '+'}{described(child)}"


def _described_unseen(item: Item | None) -> str:
    if isinstance(item, WordItem):
        return f"|{_prefix(item.index)}{item.word}"
    index = f" {item.index}" if isinstance(item, TermItem) else ""
    return f"{type(item).__name__.removesuffix('Item').upper()}{index}"


def _prefix(index: str) -> str:
    return "" if index in ("", DEFAULT_INDEX) else f"{index}:"


def _weight(annotations: Annotations) -> str:
    return "" if annotations.weight == 100 else f"!{annotations.weight}"
