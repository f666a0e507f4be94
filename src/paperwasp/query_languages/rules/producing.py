"""Productions: the tree of a query is changed by the rules that match it. It changes here, and nowhere else.

A replacing rule leaves a slot where the first term of each of its references was, and one where the first of the rest
was. What is produced goes into the slots, which then dissolve.
Vespa: https://docs.vespa.ai/en/reference/querying/semantic-rules.html#production-list
Differs: what is replaced stays where it was, also under a negation and in a phrase; an EQUIV is put around the matched
terms alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from paperwasp.base.records import replace
from paperwasp.query_languages.rules.conditions import Condition, Match
from paperwasp.query_languages.rules.loading import alternatives_of, words_of
from paperwasp.query_languages.rules.rule_base import (
    TERM_TYPES,
    ProducedParameter,
    ProducedRange,
    ProducedReference,
    ProducedWords,
    Production,
    Rule,
)
from paperwasp.query_languages.rules.tree import DEFAULT_INDEX, Branch, Leaf, QueryNode, Unseen, described, leaves_of
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.yql_syntax import Annotations


class _Slot(QueryNode):
    """A place for produced nodes, each with its kind of branch; no kind: as the terms around it."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, QueryNode]] = []


class NotProducible(Exception):
    """The match does not fit the production: the rule does not fire."""


def produce(
    rule: Rule, matches: Sequence[Match], root: Branch, conditions: Mapping[str, Condition], joined: str
) -> dict[str, str]:
    """Change the tree under `root` as a rule that matched says; return the parameters that it sets.

    `joined`: the kind of branch that puts terms of the query together. Errors: NotProducible, before anything changed.
    """
    made = [(production, list(_nodes(production, rule, matches, conditions))) for production in rule.productions]
    terms = [(production, nodes) for production, nodes in made if nodes]
    if rule.is_replacing and matches:
        _replace(terms, matches, root)
    else:
        _add(terms, matches, root, joined)
    _prune(root)
    return {production.key: production.value for production, _ in made if isinstance(production, ProducedParameter)}


# The nodes that are produced


def _nodes(
    production: Production, rule: Rule, matches: Sequence[Match], conditions: Mapping[str, Condition]
) -> Iterator[QueryNode]:
    index = DEFAULT_INDEX if production.label is None else production.label
    name = getattr(production, "name", "")
    found: Sequence[Match] = [match for match in matches if match.name == (name or None)]
    if not found and not name:
        found = matches
    if name and not found:
        raise NotProducible
    weighed = _annotations(production, found[0].leaf if found and (name or rule.is_replacing) else None)
    match production:
        case ProducedWords(words=words, is_phrase=False):
            yield from (Leaf(index, word, weighed) for word in words)
        case ProducedWords(words=words):
            yield _phrase(index, words, replace(weighed, weight=production.weight))
        case ProducedRange():
            yield _range(production, index, found, weighed)
        case ProducedReference(is_all=True):
            for alternative in alternatives_of(conditions[name]):
                words = words_of(alternative) or ()
                yield Leaf(index, words[0], weighed) if len(words) == 1 else _phrase(index, words, weighed)
        case ProducedReference():
            yield _again(_distinct(found), index, production)


def _distinct(matches: Sequence[Match]) -> list[Match]:
    """Return the matches of each leaf once: a comparison matches a leaf twice."""
    return list({id(match.leaf): match for match in reversed(matches)}.values())[::-1]


def _annotations(production: Production, leaf: Leaf | None) -> Annotations:
    weight = production.weight
    if weight == 100 and leaf is not None:
        weight = leaf.annotations.weight
    return Annotations(weight=weight)


def _phrase(index: str, words: Sequence[str], annotations: Annotations) -> Branch:
    return Branch("phrase", [Leaf(index, word) for word in words], index, annotations)


def _again(matches: Sequence[Match], index: str, production: Production) -> QueryNode:
    """Copy the matched terms: a word, or a phrase."""
    leaves = [_leaf_again(match, index, production) for match in matches]
    if len(leaves) == 1:
        return leaves[0]
    if all(isinstance(leaf, Leaf) and leaf.text is not None for leaf in leaves):
        return _phrase(index, [match.text for match in matches], Annotations(weight=production.weight))
    return Branch("and", leaves)


def _leaf_again(match: Match, index: str, production: Production) -> QueryNode:
    weighed = _annotations(production, match.leaf)
    if match.leaf.text is not None:
        return Leaf(index, match.text, weighed)
    return Leaf(index, None, weighed, replace(match.leaf.item, index=index))  # type: ignore[type-var]


def _range(production: ProducedRange, index: str, matches: Sequence[Match], weighed: Annotations) -> Leaf:
    text = production.number or (matches[0].text if len(matches) == 1 else "")
    try:
        number = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise NotProducible from None
    inclusive = "=" in production.operator
    if "<" in production.operator:
        return Leaf(index, None, weighed, RangeItem(index, None, number, True, inclusive, annotations=weighed))
    return Leaf(index, None, weighed, RangeItem(index, number, None, inclusive, True, annotations=weighed))


# Where they go

Produced = Sequence[tuple[Production, list[QueryNode]]]


def _replace(terms: Produced, matches: Sequence[Match], root: Branch) -> None:
    slots: dict[str | None, _Slot] = {}
    at_leaf: dict[int, _Slot] = {}
    for match in matches:
        known = at_leaf.get(id(match.leaf))
        if match.name not in slots and terms:
            slots[match.name] = known or _Slot()
            if known is None:
                match.leaf.replace_by(slots[match.name])
        elif known is None:
            continue
        at_leaf[id(match.leaf)] = slots[match.name]
    _remove([match.leaf for match in _distinct(matches) if id(match.leaf) not in at_leaf], root, keep_one=not terms)
    usual = slots.get(None) or next(iter(slots.values()), None)
    for production, nodes in terms:
        slot = slots.get(getattr(production, "name", "") or None) or usual
        assert slot is not None
        slot.made += [(TERM_TYPES.get(production.type, ""), node) for node in nodes]
    for slot in {id(slot): slot for slot in slots.values()}.values():
        _dissolve(slot)


def _remove(leaves: list[Leaf], root: Branch, keep_one: bool) -> None:
    """Take leaves away, the last first; with `keep_one`, not the last one that is left."""
    left = sum(1 for _ in leaves_of(root))
    for leaf in reversed(leaves):
        if keep_one and left == 1:
            return
        left -= 1
        _take_away(leaf)


def _take_away(node: QueryNode) -> None:
    """Remove a node; of a `not` whose positive side it is, all documents are left."""
    if node.branch().kind == "not" and node.place() == 0:
        node.replace_by(Unseen(TrueItem()))
    else:
        node.replace_by()


def _dissolve(slot: _Slot) -> None:
    """Put the produced nodes where the slot is, or around what is there."""
    plain = [node for kind, node in slot.made if not kind]
    groups = [(kind, [node for _, node in group]) for kind, group in groupby(slot.made, lambda made: made[0]) if kind]
    if plain:
        first = plain[0]
        word = next(leaves_of(first))
        _put(slot, plain)
        put = first if first.parent is not None else word
    elif groups:
        kind, nodes = groups.pop(0)
        put = nodes[0]
        _first_group(slot, kind, nodes)
    else:
        _take_away(slot)
    for kind, nodes in groups:
        branch = put.branch()
        _around(branch.children[0] if branch.kind == "root" else branch, kind, nodes)


def _first_group(slot: _Slot, kind: str, nodes: list[QueryNode]) -> None:
    branch = slot.branch()
    if branch.kind == kind and not (kind in ("rank", "not") and slot.place() == 0):
        slot.replace_by(*nodes)
    elif kind == "equiv" and not branch.is_phrase:
        slot.replace_by(_of(kind, nodes))
    elif len(branch.children) == 1:
        (slot if branch.kind == "root" else branch).replace_by(_of(kind, nodes))
    else:
        _take_away(slot)
        _around(branch, kind, nodes)


def _of(kind: str, nodes: list[QueryNode]) -> QueryNode:
    """Make a branch of produced nodes alone; of one node, the node."""
    if kind == "not":
        return Branch("not", [Unseen(TrueItem()), *nodes])
    if kind == "equiv":
        nodes = list({described(node): node for node in reversed(nodes)}.values())[::-1]
    return nodes[0] if len(nodes) == 1 else Branch(kind, nodes)


def _around(node: QueryNode, kind: str, nodes: Sequence[QueryNode]) -> None:
    """Join a node with produced ones, under a branch of that kind."""
    if isinstance(node, Branch) and node.kind == kind:
        for other in nodes:
            node.add(other)
        return
    above = node.branch()
    if above.kind == kind and not (kind in ("rank", "not") and node.place() > 0):
        for other in nodes:
            above.add(other)
        return
    at = node.place()
    above.children[at] = joined = Branch(kind, [node, *nodes])
    joined.parent = above


def _put(slot: _Slot, nodes: list[QueryNode]) -> None:
    """Put nodes where the slot is, under the branch that it is in."""
    branch = slot.branch()
    if branch.is_phrase:
        _put_in_phrase(slot, branch, nodes)
    elif len(nodes) > 1 and (branch.kind == "root" or (branch.kind in ("not", "rank") and slot.place() == 0)):
        slot.replace_by(Branch("and", nodes))
    else:
        slot.replace_by(*nodes)


def _put_in_phrase(slot: _Slot, phrase: Branch, nodes: list[QueryNode]) -> None:
    """Put words in its index into a phrase, and anything else beside it."""
    words = [leaf for node in nodes for leaf in leaves_of(node)]
    is_nested = any(isinstance(node, Branch) and not node.is_phrase for node in nodes)
    if all(leaf.index == phrase.index and leaf.text is not None for leaf in words) and not is_nested:
        if len(phrase.children) == 1 and len(nodes) == 1:
            phrase.replace_by(nodes[0])
        elif len(phrase.children) == 1:
            phrase.replace_by(slot)
            _put(slot, nodes)
        else:
            slot.replace_by(*words)
        return
    is_all = len(phrase.children) == 1
    slot.replace_by()
    if is_all:
        phrase.replace_by(slot)
        _put(slot, nodes)
    else:
        _around(phrase, "and", nodes)


def _add(terms: Produced, matches: Sequence[Match], root: Branch, joined: str) -> None:
    slots: dict[int, _Slot] = {}
    held: dict[str | None, QueryNode] = {}
    for production, nodes in terms:
        kind = TERM_TYPES.get(production.type, "")
        name = getattr(production, "name", "") or None
        found = [match.leaf for match in _distinct([match for match in matches if match.name == name])]
        beside = _beside(found, production, kind, held.get(name))
        if beside is not None:
            held[name] = beside
            _around(beside, kind, nodes)
            _without_twins(nodes[0].branch())
        elif found and not kind and name not in held and _is_deep(found[0]):
            slot = slots.get(id(found[0]))
            if slot is None:
                slot = slots[id(found[0])] = _Slot()
                found[0].replace_by(slot, found[0])
            slot.made += [("", node) for node in nodes]
        else:
            for node in nodes:
                _join(root, node, kind or joined)
    for slot in slots.values():
        _dissolve(slot)


def _is_deep(leaf: Leaf) -> bool:
    """Tell whether nodes added to a leaf go beside it rather than to the whole query."""
    branch = leaf.parent
    return branch is not None and not branch.is_phrase and branch.kind != "root" and branch.branch().kind != "root"


def _beside(leaves: list[Leaf], production: Production, kind: str, held: QueryNode | None) -> QueryNode | None:
    """Return the node that an EQUIV, or an OR with a phrase, is put around; None: the whole query. `held`: the one that
    the production before was put around."""
    if not leaves or not (kind == "equiv" or (kind == "or" and getattr(production, "is_phrase", False))):
        return None
    if held is not None or any(leaf.parent is None for leaf in leaves):
        return held
    first = leaves[0].branch()
    if len(leaves) == 1:
        return first if first.is_phrase else leaves[0]
    if kind != "equiv" or any(leaf.branch() is not first or leaf.text is None for leaf in leaves):
        return None
    if first.is_phrase:
        return first
    phrase = _phrase(leaves[0].index, [leaf.written for leaf in leaves], Annotations())
    for leaf in leaves[1:]:
        leaf.replace_by()
    leaves[0].replace_by(phrase)
    return phrase


def _without_twins(branch: Branch) -> None:
    """Keep only the first of equal terms of an EQUIV."""
    if branch.kind == "equiv":
        branch.children = list({described(node): node for node in reversed(branch.children)}.values())[::-1]


def _join(root: Branch, node: QueryNode, kind: str) -> None:
    """Add a node to the whole query: to what is positive in it, if it does not exclude itself."""
    if not root.children:
        root.add(node)
        return
    first = root.children[0]
    while isinstance(first, Branch) and first.kind == "not" and kind != "not":
        first = first.children[0]
    if isinstance(first, Branch) and first.kind == kind:
        first.add(node)
        return
    above, at = first.branch(), first.place()
    above.children[at] = whole = Branch(kind, [first, node])
    whole.parent = above


def _prune(branch: Branch) -> None:
    """Take away branches that nothing is left of."""
    for child in list(branch.children):
        if isinstance(child, Branch):
            _prune(child)
            if not child.children:
                _take_away(child)
