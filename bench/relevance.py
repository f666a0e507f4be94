"""How good rankings are on test collections: those of examples/relevance, beside Lucene on the same texts and queries.

BENCH_COLLECTIONS names a folder with collections, each a folder or archive that `tools.collections` reads. By default
there is what the standard library says of itself, with the queries and judgments of `examples/pydoc/judged`, and where
BENCH_CORPUS names a corpus, its bodies, asked for by their titles.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import paperwasp
from bench import lucene_peer
from bench.corpus import SEED, pydoc, records
from bench.java_program import NotInstalled
from bench.report import Report, Row
from paperwasp.relevance.collection import check_fit
from paperwasp.relevance.measuring import evaluate, measure
from paperwasp.relevance.rankings import YQL, Ranking, ask_service
from tools.collections.collection import DOCUMENTS, Collection, Document, one_line, write
from tools.collections.pydoc import NAME, read_pydoc
from tools.collections.reading import read

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
MEASURES: Final = ("nDCG@10", "AP", "R@100")
HITS: Final = 100
PLAIN: Final = (
    Ranking("nativeRank", {"ranking.profile": "default", "yql": YQL}),
    Ranking("bm25", {"ranking.profile": "bm25", "yql": YQL}),
)
"""What a package has that says nothing of ranking and stemming, and BM25 in it."""
WORDS: Final = (Ranking("words", {"queryProfile": "words"}),)
MEANING: Final = (Ranking("meaning", {"queryProfile": "meaning"}), Ranking("both", {"queryProfile": "both"}))
LUCENE: Final = {"krovetz": "Lucene, Krovetz", "porter": "Lucene, Porter and stop words"}
RIVAL: Final = "porter"

TITLES: Final = "titles"
TITLES_DOCUMENTS: Final = 20_000
TITLES_QUERIES: Final = 600
_STEMMING: Final = re.compile(r"\s*<config name=\"ai.vespa.opennlp.open-nlp\">.*?</config>", re.DOTALL)

Packages = Sequence[tuple[Path, Sequence[Ranking]]]
"""Application packages, and the rankings that are measured with each."""
Means = Mapping[str, float]
"""Measure → its mean over the queries of a collection."""


@dataclass(frozen=True)
class Options:
    has_lucene: bool = True


def run(report: Report, options: Options) -> None:
    found: list[tuple[Mapping[str, Means], Mapping[str, Means]]] = []
    with _packages(report) as packages:
        for name, read_one in collections():
            with _failing_alone(report, name):
                collection = read_one()
                ours = _ours(report, name, _for(name, packages, report), collection)
                theirs = _lucene(report, name, collection) if options.has_lucene else {}
                sizes = f"{len(collection.documents)} documents, {len(collection.queries)} queries"
                _show(report, f"{name}, {sizes}", ours, theirs)
                found.append((ours, theirs))
    if len(found) > 1:
        ours, theirs = (_averaged([each[side] for each in found]) for side in (0, 1))
        _show(report, f"mean of {len(found)} collections", ours, theirs)
    report.remark(
        f"relevance: {', '.join(MEASURES)}; queries ask for any of their words, or for what is near in meaning"
    )


@contextmanager
def _failing_alone(report: Report, what: str) -> Iterator[None]:
    """A collection, or a package with it, that cannot be measured is a failure of the run; the others still count."""
    try:
        yield
    except Exception as error:
        report.fail(f"relevance, {what}: {type(error).__name__}: {error}")


def collections() -> Iterator[tuple[str, Callable[[], Collection]]]:
    """Name of each collection, and what reads it. Errors, of the reading: BadCollection."""
    folder = os.environ.get("BENCH_COLLECTIONS")
    if folder is not None:
        for path in sorted(Path(folder).iterdir()):
            yield path.name.split(".")[0], partial(read, str(path))
        return
    yield NAME, read_pydoc
    if "BENCH_CORPUS" in os.environ:
        yield TITLES, titles_collection


def titles_collection() -> Collection:
    """Records of BENCH_CORPUS without their titles; the queries are titles of some, and what is relevant is the rest of
    the record."""
    rows = list(islice(records(), TITLES_DOCUMENTS))
    documents = [Document(str(number), "", one_line(body)) for number, (_, body) in enumerate(rows)]
    chosen = sorted(random.Random(SEED).sample(range(len(rows)), min(TITLES_QUERIES, len(rows))))
    queries = {str(number): one_line(rows[number][0]) for number in chosen}
    return Collection(documents, queries, {query: {query: 1} for query in queries})


def _for(name: str, packages: Packages, report: Report) -> Packages:
    """The packages without rankings by meaning where the model learned from this very collection."""
    if name != TITLES or packages[-1][1][-1] not in MEANING:
        return packages
    report.remark(
        "relevance: MiniLM learned from titles and abstracts, so meaning is left out where they are asked for"
    )
    return packages[:2]


@contextmanager
def _packages(report: Report) -> Iterator[Packages]:
    """The example's package without what it says of stemming, the package, and with the model of meaning where its
    weights are installed."""
    minilm = pydoc("minilm")
    with tempfile.TemporaryDirectory(prefix="paperwasp-bench-") as folder:
        plain, words, both = (Path(folder) / name for name in ("plain", "words", "both"))
        for package in (plain, words, both):
            shutil.copytree(EXAMPLES / "relevance" / "words", package)
        services = plain / "services.xml"
        services.write_text(_STEMMING.sub("", services.read_text()))
        packages: Packages = [(plain, PLAIN), (words, WORDS)]
        weights = minilm.wheel_folder()
        if weights is None or not minilm.can_write():
            report.remark("relevance: rankings by meaning are left out: no weights of MiniLM (make minilm)")
            yield packages
            return
        shutil.copytree(EXAMPLES / "relevance" / "meaning", both, dirs_exist_ok=True)
        minilm.write_model(weights, both / "models")
        yield [*packages, (both, MEANING)]


def _ours(report: Report, name: str, packages: Packages, collection: Collection) -> dict[str, Means]:
    """Ranking → means, of the packages that nothing is wrong with."""
    judged = check_fit(collection.queries, collection.judgments)
    parameters = {"hits": HITS, "timeout": "60s"}
    found: dict[str, Means] = {}
    with tempfile.TemporaryDirectory(prefix="paperwasp-bench-") as folder:
        write(collection, Path(folder), "passage")
        for application, rankings in packages:
            with _failing_alone(report, f"{name}, {application.name}"), paperwasp.Service(application) as service:
                result = service.feed(Path(folder) / DOCUMENTS)
                if result.failed:
                    raise RuntimeError(f"{result.failed} documents are refused: {result.problems[0].message}")
                evaluation = evaluate(
                    ask_service(service),
                    collection.queries,
                    collection.judgments,
                    judged,
                    rankings,
                    MEASURES,
                    parameters,
                )
                for each in evaluation.measured:
                    found[each.ranking.name] = {measure: each.estimate(measure).mean for measure in MEASURES}
    return found


def _lucene(report: Report, name: str, collection: Collection) -> dict[str, Means]:
    """Analyzer → means; nothing where Lucene cannot be had."""
    judged = check_fit(collection.queries, collection.judgments)
    found: dict[str, Means] = {}
    with _failing_alone(report, f"{name}, Lucene"):
        try:
            for analyzer in LUCENE:
                values = measure(lucene_peer.rank(collection, analyzer, HITS), collection.judgments, judged, MEASURES)
                found[analyzer] = {each: float(values[each].mean()) for each in MEASURES}
        except NotInstalled as error:
            report.remark(str(error))
    return found


def _averaged(found: Sequence[Mapping[str, Means]]) -> dict[str, Means]:
    """The means over collections, of what was measured with all of them."""
    return {
        ranking: {name: statistics.fmean(each[ranking][name] for each in found) for name in MEASURES}
        for ranking in found[0]
        if all(ranking in each for each in found)
    }


def _show(report: Report, title: str, ours: Mapping[str, Means], theirs: Mapping[str, Means]) -> None:
    """A row for each of our rankings; the last, which is recommended, is to be better than Lucene."""
    peers = "\n".join(f"{LUCENE[analyzer]} {_shown(means)}" for analyzer, means in theirs.items())
    rival = theirs.get(RIVAL)
    for number, (name, means) in enumerate(ours.items()):
        is_last = number == len(ours) - 1
        ratio = f"{means['nDCG@10'] / rival['nDCG@10']:.2f}" if rival is not None else ""
        is_met = means["nDCG@10"] > rival["nDCG@10"] if is_last and rival is not None else None
        target = "> Lucene's" if is_last else ""
        report.add(Row(f"{title}: {name}", _shown(means), peers if number == 0 else "", ratio, target, is_met))


def _shown(means: Means) -> str:
    return " ".join(f"{means[name]:.3f}" for name in MEASURES)
