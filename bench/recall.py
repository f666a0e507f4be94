"""What weakAnd finds of what an or finds: titles look for the paper whose body is in the index.

No collection with judgments comes with a package that can be installed, so the judgments are known items: the query is
the title of a paper, only bodies are indexed, and one document is relevant, the paper's. Recall at 100 hits, which are
those that weakAnd looks for by default, and the mean reciprocal rank.
"""

from __future__ import annotations

import re
import statistics
import time
from dataclasses import dataclass
from itertools import islice

from bench import corpus
from bench.ranking_node import node_of
from bench.report import Report, Row
from paperwasp.base.records import replace
from paperwasp.content.views.view import View
from paperwasp.document.ids import DocumentId
from paperwasp.search.operators.boolean import OrItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import Match, Order, Query, Rank, Show
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas

SCHEMA = """
schema row {
    document row { field body type string { indexing: index
        index: enable-bm25 } }
    rank-profile bm25 { first-phase { expression: bm25(body) } }
    rank-profile nativeRank { first-phase { expression: nativeRank } }
    document-summary nothing { }
}
"""
HITS = 100
MOST_LOST = 0.002
"""Of recall: the target."""


@dataclass(frozen=True)
class Options:
    documents_count: int = 60_000
    queries_count: int = 2_000


@dataclass(frozen=True)
class Found:
    """Ranks of the relevant documents from 1 on, None where one is not among the hits; and the CPU time of a query."""

    ranks: list[int | None]
    mean_ms: float

    @property
    def recall(self) -> float:
        return statistics.fmean(rank is not None for rank in self.ranks)

    @property
    def reciprocal_rank(self) -> float:
        return statistics.fmean(1 / rank if rank else 0.0 for rank in self.ranks)

    def __str__(self) -> str:
        return f"recall {self.recall:.4f}, reciprocal rank {self.reciprocal_rank:.4f}, {self.mean_ms:.2f} ms"


def run(report: Report, options: Options) -> None:
    """One row for each rank profile: weakAnd beside or."""
    papers = list(islice(corpus.records(), options.documents_count))
    step = max(1, len(papers) // options.queries_count)
    titles = {number: words for number in range(0, len(papers), step) if (words := _words(papers[number][0]))}
    with node_of(SCHEMA, lambda number: {"body": papers[number][1]}, len(papers)) as node:
        view, served = node.reader.view(), ServedSchemas()
        for profile in ("bm25", "nativeRank"):
            best = _find(view, served, titles, profile, OrItem)
            some = _find(view, served, titles, profile, WeakAndItem)
            lost = best.recall - some.recall
            work = f"weakAnd: {len(titles):,} titles for their papers among {len(papers):,}, by {profile}"
            if best.recall == 0:
                report.fail(f"{work}: the or found none")
            target = f"recall - {MOST_LOST}"
            report.add(Row(work, str(some), f"or {best}", f"{-lost:+.4f}", target, lost <= MOST_LOST))


def _words(title: str) -> tuple[Item, ...]:
    return tuple(WordItem("body", word) for word in dict.fromkeys(re.findall(r"\w+", title.lower())))


def _find(
    view: View,
    served: ServedSchemas,
    titles: dict[int, tuple[Item, ...]],
    profile: str,
    item: type[OrItem] | type[WeakAndItem],
) -> Found:
    plain = Query(Match(OrItem(())), Rank(profile), Order(hits=HITS), Show(summary="nothing"))
    ranks: list[int | None] = []
    started = time.thread_time_ns()
    for number, words in titles.items():
        hits = search(view, replace(plain, match=replace(plain.match, tree=item(words))), served).hits
        gids, wanted = [hit.gid for hit in hits], DocumentId("b", "row", str(number)).gid
        ranks.append(gids.index(wanted) + 1 if wanted in gids else None)
    return Found(ranks, (time.thread_time_ns() - started) / len(titles) / 1e6)
