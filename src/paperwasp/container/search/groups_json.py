"""The groups of an answer as JSON, column by column: nothing but joining is done for each group.

Vespa: JsonRenderer.java in com.yahoo.search.rendering
Differs: raw outputs are shown as lists of numbers; Vespa shows the address of a Java array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from paperwasp.base.patterns import compile_later
from paperwasp.document.numbers import double_text
from paperwasp.search.grouping.result_tree import BUCKETS, GroupIds, raw_text
from paperwasp.search.grouping.shown_groups import GroupLists, HitLists, ShownGroups, ShownRoot, Turn
from paperwasp.search.grouping.values import Kind, Null

Written = Sequence[bytes | None]
"""The JSON of each value; None where there is none to show."""
_BLANKS: Final = "".join(map(chr, range(33)))
_CUT_IN_URI: Final = compile_later(r"#|[\x00-\x20](?:\x00|\Z)")
"""The characters that an id is cut at, in texts with a NUL between each two of them."""


def hits_in(groups: ShownGroups) -> Iterator[Any]:
    """The hits of all lists of groups, in the order in which `root_json` takes them."""
    for lists in groups.hit_lists:
        for hits in lists.hits:
            yield from hits or ()
    for lists_below in groups.group_lists:
        yield from hits_in(lists_below.groups)


def root_json(root: ShownRoot, hits: Iterator[bytes]) -> bytes:
    """The root group. `hits`: the JSON of each hit that `hits_in` gives."""
    (tail,) = _tails(root.groups, hits)
    return b"%b%b}" % (root_head(root.number, root.this), tail)


def root_head(number: int, this: str) -> bytes:
    """The root group up to what is in it. `this`: the continuation of the page."""
    return b'{"id":"group:root:%d","relevance":1.0,"continuation":{"this":%b}' % (number, orjson.dumps(this))


def _groups(groups: ShownGroups, hits: Iterator[bytes]) -> list[bytes]:
    """Each group as a JSON object."""
    relevances, tails = numbers_json(groups.relevances), _tails(groups, hits)
    ids = groups.ids
    if ids.has_nulls:
        heads = [_null_or_head(ids, place) for place in range(len(ids.texts))]
        rows = zip(heads, relevances, tails, strict=True)
        return [head % (relevance, tail) for head, relevance, tail in rows]
    texts = texts_json(ids.texts)  # type: ignore[arg-type]
    shown = _ids_json(ids, texts)
    kind = ids.kind.value.encode()
    if ids.kind in BUCKETS:
        form = b'{"id":"group:%b:%%b","relevance":%%b,"limits":{"from":"%%b","to":"%%b"}%%b}' % kind
        highs = texts_json(ids.highs)  # type: ignore[arg-type]
        return [form % row for row in zip(shown, relevances, texts, highs, tails, strict=True)]
    form = b'{"id":"group:%b:%%b","relevance":%%b,"value":"%%b"%%b}' % kind
    return [form % row for row in zip(shown, relevances, texts, tails, strict=True)]


def _null_or_head(ids: GroupIds, place: int) -> bytes:
    """The form of a group of ids of which some are null."""
    text = ids.texts[place]
    if text is None:
        return b'{"id":"group:null","relevance":%b%b}'
    low = orjson.dumps(text)[1:-1]
    values = b'"value":"%b"' % low
    shown = _in_uri(text)
    if ids.kind in BUCKETS:
        high = ids.highs[place] or ""
        values = b'"limits":{"from":"%b","to":"%b"}' % (low, orjson.dumps(high)[1:-1])
        shown = _in_uri(f"{text}:{high}")
    id_ = orjson.dumps(f"group:{ids.kind.value}:{shown}")
    return b'{"id":%b,"relevance":' % id_.replace(b"%", b"%%") + b"%b," + values.replace(b"%", b"%%") + b"%b}"


def _ids_json(ids: GroupIds, texts: Sequence[bytes]) -> Sequence[bytes]:
    """The part of ids behind the kind: as Vespa's URIs, they end before `#`, and not with a blank."""
    if ids.kind in BUCKETS:
        pairs = [f"{low}:{high}" for low, high in zip(ids.texts, ids.highs, strict=True)]
        return texts_json([_in_uri(pair) for pair in pairs])
    if ids.kind is not Kind.STRING:
        return texts
    if _CUT_IN_URI.search("\0".join(ids.texts)) is None:  # type: ignore[arg-type]
        return texts
    return texts_json([_in_uri(text) for text in ids.texts])  # type: ignore[arg-type]


def _in_uri(text: str) -> str:
    """A text as it is left in an id. Vespa: com.yahoo.net.URI"""
    return text.partition("#")[0].rstrip(_BLANKS)


def _tails(groups: ShownGroups, hits: Iterator[bytes]) -> Sequence[bytes]:
    """Of each group what stands behind its value: fields and children, each with a comma before it."""
    columns = [_hit_lists(lists, hits) for lists in groups.hit_lists]
    columns += [_group_lists(lists, hits) for lists in groups.group_lists]
    fields = _fields(groups)
    if not columns:
        return fields
    children = (b",".join(filter(None, row)) for row in zip(*columns, strict=True))
    rows = zip(fields, children, strict=True)
    return [b'%b,"children":[%b]' % row if row[1] else row[0] for row in rows]


def _fields(groups: ShownGroups) -> Sequence[bytes]:
    """The outputs of each group."""
    outputs = [(label, values_json(values)) for label, values in groups.outputs if not label.startswith("$")]
    if not outputs:
        return [b""] * len(groups.relevances)
    names = [orjson.dumps(label) for label, _ in outputs]
    columns = [column for _, column in outputs]
    if not any(None in column for column in columns):
        form = b',"fields":{' + b",".join(name.replace(b"%", b"%%") + b":%b" for name in names) + b"}"
        return [form % row for row in zip(*columns, strict=True)]
    rows = zip(*columns, strict=True)
    found = ([b"%b:%b" % pair for pair in zip(names, row, strict=True) if pair[1] is not None] for row in rows)
    return [b',"fields":{%b}' % b",".join(members) if members else b"" for members in found]


def _group_lists(lists: GroupLists, hits: Iterator[bytes]) -> list[bytes]:
    """The list of each group above, empty where there is none."""
    groups = _groups(lists.groups, hits)
    head = list_head("grouplist", lists.label)
    bounds = zip(lists.bounds, lists.bounds[1:], lists.is_there, strict=False)
    return [
        _list(head, lists.turns.get(place), groups[low:high]) if is_there else b""
        for place, (low, high, is_there) in enumerate(bounds)
    ]


def _hit_lists(lists: HitLists, hits: Iterator[bytes]) -> list[bytes]:
    head = list_head("hitlist", lists.label)
    return [
        b"" if shown is None else _list(head, lists.turns.get(place), list(islice(hits, len(shown))))
        for place, shown in enumerate(lists.hits)
    ]


def list_head(kind: str, label: str) -> bytes:
    """A list up to what is in it. `kind`: `grouplist` or `hitlist`."""
    return b'{"id":%b,"relevance":1.0,"label":%b' % (orjson.dumps(_in_uri(f"{kind}:{label}")), orjson.dumps(label))


def _list(head: bytes, turn: Turn | None, children: Sequence[bytes]) -> bytes:
    pages = b"" if turn is None else turn_json(turn)
    return b'%b%b,"children":[%b]}' % (head, pages, b",".join(children)) if children else b"%b%b}" % (head, pages)


def turn_json(turn: Turn) -> bytes:
    """The continuations of a list, behind its label."""
    return b',"continuation":%b' % orjson.dumps(turns_of(turn))


def turns_of(turn: Turn) -> Mapping[str, str]:
    """The continuations that a list has, by their names."""
    return {name: text for name, text in turn._asdict().items() if text is not None}


def texts_json(texts: Sequence[str]) -> Sequence[bytes]:
    """The JSON of each text without its quotes, written in one go: two quotes stand around a comma nowhere within."""
    if not texts:
        return ()
    try:
        written = orjson.dumps(texts)
    except orjson.JSONEncodeError:  # surrogates, which UTF-8 cannot say
        written = orjson.dumps([text.encode("utf-8", "replace").decode() for text in texts])
    return written[2:-2].split(b'","')


def numbers_json(values: NDArray[np.float64]) -> Sequence[bytes]:
    """The JSON of each number; NaN and infinities as texts."""
    if not len(values):
        return ()
    written = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)
    if b"null" in written:
        return [_scalar(value) for value in values.tolist()]
    return written[1:-1].split(b",")


def values_json(values: Sequence[Any]) -> Written:
    """The JSON of each output. None: there is none, or it is an empty text, which Vespa leaves out, too."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return orjson.dumps(values)[1:-1].split(b",")
    if kinds == {float}:
        return numbers_json(np.array(values))
    return [None if value is None or value == "" else _scalar(value) for value in values]


def _scalar(value: Any) -> bytes:
    if value is Null.NULL:
        return b"null"
    if isinstance(value, float) and not isfinite(value):
        return b'"%b"' % double_text(value).encode()
    if isinstance(value, str):
        return b'"%b"' % texts_json([value])[0]
    if isinstance(value, bytes):
        return orjson.dumps(raw_text(value))
    if isinstance(value, Mapping):
        return b"{%b}" % b",".join(b"%b:%b" % (orjson.dumps(name), _scalar(each)) for name, each in value.items())
    if isinstance(value, Iterable):
        return b"[%b]" % b",".join(map(_scalar, value))
    return orjson.dumps(value)
