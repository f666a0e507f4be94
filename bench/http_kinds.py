"""The kinds of query that are asked over HTTP, in the words of each engine."""

from __future__ import annotations

import functools
import itertools
import json
import random
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench import corpus as corpora

INDEX: Final = "article"
HITS: Final = 10
LEAST: Final = 2.5
PHRASE_WORDS: Final = (2, 2, 2, 3)
"""How many words phrases have, as often as they stand here."""
SHOWN: Final = ("title", "body", "category", "year")
TEXT: Final = "$text"
"""Stands for the text in the pattern of a search."""
_BODY: Final[Mapping[str, str]] = {"type": "any", "ranking": "body", "default-index": "body"}


@dataclass(frozen=True)
class Kind:
    """A kind of query: what is searched for, and how each engine is asked for it. None: it has nothing like it."""

    name: str
    texts: str = "typed"
    """`typed` by users, `phrases` of documents, or `unknown` words."""
    where: str = "userQuery()"
    ours: Mapping[str, str] = field(default_factory=lambda: _BODY)
    lucene: Mapping[str, str] | None = None
    opensearch: Mapping[str, Any] | None = None
    """The search, with the text to be put where `TEXT` stands."""
    is_same_ranking: bool = True
    """Whether the peers' first hits are ours, but for their rounding."""
    least: float | None = None
    """The target for queries a second and server core: at least this multiple of Lucene's."""
    most: float | None = None
    """The target for the server's CPU time: at most this multiple of Lucene's."""
    most_us: float | None = None
    """The server's CPU time."""


_MATCH: Final[dict[str, Any]] = {"match": {"body": {"query": TEXT, "operator": "or"}}}


def _filtered(percent: int) -> Kind:
    limits = [{"range": {"percentile": {"lt": percent}}}]
    return Kind(
        f"OR, filter of {percent} %",
        where=f"userQuery() and percentile < {percent}",
        lucene={"kind": "filtered", "percent": str(percent)},
        opensearch={"query": {"bool": {"must": [_MATCH], "filter": limits}}},
        least=LEAST,
    )


PLAIN: Final = Kind("OR", lucene={"kind": "any"}, opensearch={"query": _MATCH})
KINDS: Final = (
    Kind(
        "AND",
        ours={**_BODY, "type": "all"},
        lucene={"kind": "all"},
        opensearch={"query": {"match": {"body": {"query": TEXT, "operator": "and"}}}},
        least=LEAST,
    ),
    Kind(
        "phrase",
        texts="phrases",
        ours={**_BODY, "type": "phrase"},
        lucene={"kind": "phrase"},
        opensearch={"query": {"match_phrase": {"body": {"query": TEXT}}}},
        is_same_ranking=False,  # Lucene's weight of a phrase is the sum of its words'
        least=LEAST,
    ),
    *map(_filtered, (1, 10, 50)),
    Kind(
        "all defaults (weakAnd and nativeRank; peers: OR and BM25 in either field)",
        ours={"ranking": "native"},
        lucene={"kind": "either"},
        opensearch={"query": {"multi_match": {"query": TEXT, "fields": ["title", "body"]}}},
        is_same_ranking=False,
        most=1,
    ),
    Kind("OR ranked by nativeRank", ours={**_BODY, "ranking": "native"}, is_same_ranking=False),
    Kind(
        "OR sorted by an attribute",
        where="userQuery() order by year desc",
        lucene={"kind": "sorted"},
        opensearch={"query": _MATCH, "sort": [{"year": "desc"}]},
        is_same_ranking=False,  # years are the same of many
    ),
    Kind(
        "a query that finds nothing",
        texts="unknown",
        lucene={"kind": "any"},
        opensearch={"query": _MATCH},
        most_us=60,
    ),
)  # fmt: skip


def our_path(kind: Kind, text: str) -> str:
    yql = f"select * from {INDEX} where {kind.where}"
    return "/search/?" + urllib.parse.urlencode({"yql": yql, "query": text, "nocache": "true", **kind.ours})


def patient_path(kind: Kind, text: str) -> str:
    """The same without a search being cut short where the machine has other work."""
    return f"{our_path(kind, text)}&timeout=20s"


def lucene_path(kind: Kind, text: str) -> str:
    assert kind.lucene is not None
    return "/search?" + urllib.parse.urlencode({**kind.lucene, "query": text})


def opensearch_path(kind: Kind, text: str) -> str:
    search = {"size": HITS, "_source": list(SHOWN), **_filled(kind.opensearch, text)}
    parameters = {"source_content_type": "application/json", "source": json.dumps(search)}
    return f"/{INDEX}/_search?" + urllib.parse.urlencode(parameters)


def _filled(pattern: Any, text: str) -> Any:
    """The pattern with the text in it."""
    if isinstance(pattern, Mapping):
        return {name: _filled(value, text) for name, value in pattern.items()}
    if isinstance(pattern, list):
        return [_filled(value, text) for value in pattern]
    return text if pattern == TEXT else pattern


def our_hits(answer: bytes) -> set[str]:
    return {hit["id"] for hit in json.loads(answer)["root"].get("children", [])}


def lucene_hits(answer: bytes) -> set[str]:
    return {hit["id"] for hit in json.loads(answer)["hits"]}


def opensearch_hits(answer: bytes) -> set[str]:
    return {hit["_id"] for hit in json.loads(answer)["hits"]["hits"]}


def texts(kind: Kind, feed_file: Path, count: int) -> list[str]:
    """As many texts to search for, the same every time."""
    if kind.texts == "typed":
        return list(itertools.islice(itertools.cycle(_typed()), count))
    if kind.texts == "phrases":
        return list(itertools.islice(itertools.cycle(_phrases(feed_file)), count))
    return [f"qx{corpora.word_of(number)} qx{corpora.word_of(number + 1)}" for number in range(count)]


@functools.cache
def _typed() -> list[str]:
    return corpora.query_texts()


def _phrases(feed_file: Path) -> Iterator[str]:
    """Words that follow each other in the body of a document."""
    choice = random.Random(corpora.SEED)
    with feed_file.open(encoding="utf-8") as lines:
        for line in itertools.islice(lines, 2000):
            words = json.loads(line)["fields"]["body"].split()
            count = choice.choice(PHRASE_WORDS)
            starts = [
                start
                for start in range(len(words) - count)
                if all(word.isascii() and word.isalpha() for word in words[start : start + count])
            ]
            if starts:
                start = choice.choice(starts)
                yield " ".join(words[start : start + count])
