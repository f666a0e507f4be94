"""What the simple query language makes of terms that stand side by side, at the top of type any and in parentheses.

Terms without a sign are alternatives. Where something is required with `+`, they only rank; `-` excludes. A group that
comes after other terms becomes what is searched for, and what was before it only ranks, but for a group of alternatives
in a query of another type than any, which takes it in. The rules are Vespa's, strange ones too: `SimpleParser.java`,
and `combineItems` of `AnyParser.java` and `AllParser.java` in container-search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from paperwasp.base.records import dataclass
from paperwasp.query.yql.simple_terms import Reader
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, RankItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.phrase import PhraseItem


@dataclass(slots=True, eq=False)
class _Many:
    """An `or`, or a `rank`, in the making."""

    parts: list[Part]
    is_rank: bool = False


@dataclass(slots=True, eq=False)
class _Signed:
    """What is required and what is excluded, in the making."""

    required: list[Part] = field(default_factory=list)
    excluded: list[Item] = field(default_factory=list)


Part = Item | _Many | _Signed
"""Something that may become part of what is around it."""
ReadItem = Callable[[Reader], Item | None]
ReadPart = Callable[[Reader], Part | None]


def read_side_by_side(
    reader: Reader,
    read_included: ReadPart,
    read_excluded: ReadItem,
    read_group: ReadPart,
    *,
    is_any: bool,
) -> Part | None:
    """All items from here on; in parentheses (`reader.depth`), up to the first thing that is none.

    `is_any`: by the rules of type any. None: there are none. The result is to be given to `built`, or to be part of
    what is around the parentheses.
    """
    top: Part | None = None
    signed: _Signed | None = None
    while reader.skip_spaces():
        included = read_included(reader)
        excluded = read_excluded(reader) if included is None else None
        if included is not None or excluded is not None:
            if signed is None:
                signed = _Signed()
                top = _combined(top, signed, is_any)
            if included is not None:
                signed.required.append(included)
            elif excluded is not None:
                signed.excluded.append(excluded)
        elif (group := read_group(reader)) is not None:
            top = _combined(top, group, is_any)
        elif (term := reader.term()[0]) is not None:
            top = _with_term(top, term, is_any)
        elif reader.depth:
            break
        else:
            reader.skip()
    return top if signed is None else _with_signed(top, signed, is_any)


def built(part: Part) -> Item:
    """The item that was made."""
    if isinstance(part, _Many):
        children = tuple(map(built, part.parts))
        return RankItem(children) if part.is_rank else OrItem(children)
    if isinstance(part, _Signed):
        required = tuple(map(built, part.required))
        positive: Item = TrueItem() if not required else required[0] if len(required) == 1 else AndItem(required)
        return NotItem((positive, *part.excluded)) if part.excluded else positive
    return part


def _with_term(top: Part | None, term: Item, is_any: bool) -> Part:
    if top is None:
        return term
    if isinstance(top, _Signed):
        return _combined(top, term, is_any)
    if isinstance(top, _Many):
        top.parts.append(term)
        return top
    return _Many([top, term])


def _combined(top: Part | None, part: Part, is_any: bool) -> Part:
    """What is there so far, and a group or what has signs."""
    if top is None:
        return part
    ranks = isinstance(top, _Many) and top.is_rank
    if isinstance(part, _Many) and not part.is_rank:
        if isinstance(top, _Many) and not ranks:
            top.parts.append(part)
            return top
        if isinstance(top, _Many) and not is_any:
            part.parts[:0] = reversed(top.parts)
            return part
        if isinstance(top, PhraseItem) and not is_any:
            return _Many([top, part])
    if not ranks or not isinstance(top, _Many):
        return _Many([top, part] if isinstance(top, _Signed) else [part, top], is_rank=True)
    first = part.parts[0] if isinstance(part, _Many) and part.is_rank else None
    if isinstance(part, _Many) and isinstance(first, _Many) and not first.is_rank:
        first.parts[:0] = reversed(part.parts[1:])
        part = first
    top.parts.insert(0, part)
    return top


def _with_signed(top: Part | None, signed: _Signed, is_any: bool) -> Part:
    """The whole, where something had a sign: what only ranks is required where nothing else is."""
    alone = top is signed or top is None
    if not signed.excluded:
        if alone:
            return signed
        if isinstance(top, _Many) and top.is_rank:
            top.parts.remove(signed)
            return _combined(top, signed.required[0] if len(signed.required) == 1 else signed, is_any)
    if not signed.required and not alone:
        assert top is not None
        signed.required.append(_without(top, signed))
        return signed
    return signed if top is None else top


def _without(top: Part, signed: _Signed) -> Part:
    """What stands beside the signs, as alternatives."""
    if not isinstance(top, _Many):
        return top
    others = [part for part in top.parts if part is not signed]
    return others[0] if len(others) == 1 else _Many(others)
