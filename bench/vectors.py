"""Nearest neighbours by graphs: building, searching and filtering beside the peers; comparing bits; adding meanwhile.

Everything is CPU time of one thread. Engines take turns: for each number of nodes to look at, every engine answers all
queries, and of several passes the least time counts. From these points, recall and time, the time at a recall is read
off between the two nearest. `docs/internals/pictures/vectors-*.svg` are the curves of all points.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench import curves
from bench.report import Report, Row
from bench.vector_data import HITS, Data, Vectors, embeddings, filters, made_up
from bench.vector_engines import Engine, Faiss, Paperwasp, Search, engines
from paperwasp.core import _core
from paperwasp.storage.attributes.vector_graph import METRICS

PICTURES = Path(__file__).parent.parent / "docs" / "internals" / "pictures"
EXPLORED = (10, 16, 24, 36, 54, 80, 120, 180, 270, 400, 600, 900)
RECALLS = (0.95, 0.99)
ENOUGH = 0.997
"""A recall from which on an engine is asked to look at no more nodes."""
BIT_VECTORS, BIT_BYTES = 1_000_000, 128

Curve = list[tuple[float, float]]
"""Points of recall and microseconds a query."""


@dataclass(frozen=True)
class Options:
    """`documents_count` is of the embeddings; the other vectors are twice as many, of a third of the dimensions."""

    documents_count: int = 100_000
    passes: int = 3
    queries_count: int = 500
    peers: str = "hnswlib,faiss,usearch"
    works: str = ""
    """Only what has this in its name: `embeddings`, `made up`, `bits`, `beside`."""


def run(report: Report, options: Options) -> None:
    for name, data in _data(options):
        ours, *peers = engines(data, options.peers)
        assert isinstance(ours, Paperwasp)
        _build(report, data, [ours, *peers])
        _search(report, name, data, [ours, *peers], options)
        filtering = [peer for peer in peers if isinstance(peer, Faiss)]
        if name == "embeddings":
            _filter(report, data, [ours, *filtering], options)
            _search_beside_adding(report, data)
    if options.works in "bits":
        _compare_bits(report)


def _data(options: Options) -> list[tuple[str, Data]]:
    makers: Mapping[str, Callable[[], Data]] = {
        "made-up": lambda: made_up(2 * options.documents_count, 128, 48),
        "embeddings": lambda: embeddings(options.documents_count),
    }
    return [(name, make()) for name, make in makers.items() if options.works in name]


def _build(report: Report, data: Data, all_engines: Sequence[Engine]) -> None:
    seconds = {}
    for engine in all_engines:
        start = time.thread_time()
        engine.build()
        seconds[engine.name] = time.thread_time() - start
    ours, peers = _split(seconds, " s")
    ratio = seconds["paperwasp"] / seconds["hnswlib"] if "hnswlib" in seconds else None
    shown = "" if ratio is None else f"{ratio:.2f} of hnswlib"
    met = None if ratio is None else ratio <= 1
    report.add(Row(f"graph of {data.name}: build", ours, peers, shown, "≤ 1 of hnswlib", met))


def _search(report: Report, name: str, data: Data, all_engines: Sequence[Engine], options: Options) -> None:
    searches = {engine.name: engine.search() for engine in all_engines}
    points = _curves(searches, data.queries[: options.queries_count], data.truth, options.passes)
    for recall in RECALLS:
        _add_row(report, f"graph of {data.name}: recall {recall}", points, recall)
    _draw(f"vectors-{name}", f"{data.name}: {HITS} nearest", points)


def _filter(report: Report, data: Data, all_engines: Sequence[Paperwasp | Faiss], options: Options) -> None:
    for name, allowed in filters(data).items():
        searches = {engine.name: engine.filtered(allowed) for engine in all_engines}
        queries = data.queries[: options.queries_count]
        points = _curves(searches, queries, data.truth_within(allowed), options.passes)
        _add_row(report, f"graph of {data.name}: {name}, recall 0.95", points, 0.95)
        _draw("vectors-" + name.replace(" %", "").replace(",", "").replace(" ", "-"), f"{data.name}: {name}", points)


def _curves(
    searches: Mapping[str, Search], queries: Vectors, truth: NDArray[np.int64], passes: int
) -> dict[str, Curve]:
    """Each engine's points, of more and more nodes to look at until it finds nearly everything."""
    found: dict[str, Curve] = {name: [] for name in searches}
    for search in searches.values():
        _ask(search, queries[:20], truth, EXPLORED[0])  # the first calls load what the others find loaded
    for explore in EXPLORED:
        left = [name for name in searches if not found[name] or found[name][-1][0] < ENOUGH]
        turns = [{name: _ask(searches[name], queries, truth, explore) for name in left} for _ in range(passes)]
        for name in left:
            found[name].append((turns[0][name][0], min(turn[name][1] for turn in turns)))
    return found


def _ask(search: Search, queries: Vectors, truth: NDArray[np.int64], explore: int) -> tuple[float, float]:
    """Recall, and microseconds a query."""
    start = time.thread_time()
    answers = [search(query, explore) for query in queries]
    spent = time.thread_time() - start
    right = sum(len(np.intersect1d(a, b)) for a, b in zip(answers, truth, strict=False))
    return right / (len(queries) * truth.shape[1]), spent / len(queries) * 1e6


def time_at(curve: Curve, recall: float) -> float | None:
    """Microseconds a query at a recall, on the straight line between the two points around it."""
    if curve[0][0] >= recall:
        return curve[0][1]
    for (less, faster), (more, slower) in pairwise(curve):
        if less < recall <= more:
            return faster + (slower - faster) * (recall - less) / (more - less)
    return None


def _add_row(report: Report, work: str, points: Mapping[str, Curve], recall: float) -> None:
    times = {name: found for name, curve in points.items() if (found := time_at(curve, recall)) is not None}
    missing = [f"{name} reaches {max(point[0] for point in points[name]):.3f}" for name in points if name not in times]
    if "paperwasp" not in times:
        return report.add(Row(work, missing[0], "", "", "", False))
    ours, peers = _split(times, " µs")
    peers = " · ".join(filter(None, [peers, *missing]))
    if len(times) == 1:
        return report.add(Row(work, ours, peers, "", "≥ 1.2 times the best peer", True if missing else None))
    ratio = min(value for name, value in times.items() if name != "paperwasp") / times["paperwasp"]
    report.add(Row(work, ours, peers, f"{ratio:.2f} times the best peer", "≥ 1.2 times the best peer", ratio >= 1.2))


def _split(figures: Mapping[str, float], unit: str) -> tuple[str, str]:
    """Ours, and those of the peers."""
    shown = {name: f"{value:.1f}{unit}" if value < 100 else f"{value:.0f}{unit}" for name, value in figures.items()}
    return shown["paperwasp"], " · ".join(f"{name} {text}" for name, text in shown.items() if name != "paperwasp")


def _draw(name: str, title: str, points: Mapping[str, Curve]) -> None:
    PICTURES.mkdir(exist_ok=True)
    lines = {engine: [(recall, 1e6 / micros) for recall, micros in curve] for engine, curve in points.items()}
    axes = curves.Axes(title, "recall", "queries a second, one thread")
    (PICTURES / f"{name}.svg").write_text(curves.svg(axes, lines))


def _compare_bits(report: Report) -> None:
    """The exact distance of one vector of bits from a million, beside reading them."""
    cells = np.random.default_rng(22).integers(-128, 128, (BIT_VECTORS, BIT_BYTES), np.int8)
    rows = np.arange(BIT_VECTORS, dtype=np.uint64) << np.uint64(24) | np.uint64(1)
    distances = np.empty(BIT_VECTORS)
    words, query = cells.view(np.uint64).ravel(), cells[7].copy()
    works: Mapping[str, Callable[[], object]] = {
        "ours": lambda: _core.least_distances(METRICS.index("hamming"), query, cells, rows, distances, None),
        "read": lambda: np.bitwise_xor.reduce(words),
    }
    least = {name: min(_seconds(work) for _ in range(7)) for name, work in works.items()}
    speed = {name: cells.nbytes / seconds / 1e9 for name, seconds in least.items()}
    work = f"hamming distances of {BIT_VECTORS // 1_000_000}M by {8 * BIT_BYTES} bits, exact"
    ratio = speed["ours"] / speed["read"]
    report.add(
        Row(work, f"{speed['ours']:.1f} GB/s", f"NumPy reads {speed['read']:.1f} GB/s", f"{ratio:.2f} of reading",
            "≥ 0.8", ratio >= 0.8)
    )  # fmt: skip


def _seconds(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def _search_beside_adding(report: Report, data: Data) -> None:
    """How long searches take, by the clock, while another thread adds vectors in batches of 50."""
    half = data.count // 2
    ours, numbers = Paperwasp(data), np.arange(data.count, dtype=np.uint32)
    ours.graph.add(data.vectors, numbers[:half], numbers[:half], 2)
    search, done, added = ours.search(), threading.Event(), 0

    def add() -> None:
        nonlocal added
        for start in range(half, data.count, 50):
            if done.is_set():
                break
            ours.graph.add(data.vectors, numbers[start : start + 50], numbers[start : start + 50])
            added += len(numbers[start : start + 50])

    idle = _latencies(search, data.queries)
    writer, begun = threading.Thread(target=add), time.perf_counter()
    writer.start()
    beside = _latencies(search, data.queries)
    seconds = time.perf_counter() - begun
    done.set()
    writer.join()
    p99 = [float(np.quantile(each, 0.99)) for each in (idle, beside)]
    shown = [f"p50 {np.quantile(each, 0.5):.0f}, p99 {np.quantile(each, 0.99):.0f} µs" for each in (idle, beside)]
    work = f"graph of {data.name}: search beside {added / seconds:.0f} insertions a second"
    report.add(
        Row(
            work,
            shown[1],
            f"idle: {shown[0]}",
            f"{p99[1] / p99[0]:.1f} times idle",
            "p99 ≤ 3 times idle",
            p99[1] <= 3 * p99[0],
        )
    )


def _latencies(search: Search, queries: Vectors) -> list[float]:
    found = []
    for query in np.concatenate([queries] * 5):
        start = time.perf_counter()
        search(query, 100)
        found.append((time.perf_counter() - start) * 1e6)
    return found
