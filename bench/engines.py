"""paperwasp's kernels, tantivy and PISA over the same tokens, in process, one thread each.

Every engine turns a query into a callable beforehand: what is timed begins with words, to be looked up in a dictionary
of terms, and ends with ten hits. Peers' indexes are kept in bench/.cache.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.corpus import CACHE, SEED, Corpus, word_of
from paperwasp.core import _core

HITS = 10
K1, B = 1.2, 0.75
BATCH_DOCUMENTS = 50_000

Hits = list[tuple[float, int]]
Search = Callable[[], Hits]


def percentile_column(documents_count: int) -> NDArray[np.int32]:
    """A number from 0 to 99 for each document: `column < p` is a filter of p %."""
    return np.random.default_rng(SEED).integers(0, 100, documents_count, dtype=np.int32)


class Paperwasp:
    """The service's kernels over one merged segment, as the query path calls them."""

    name = "paperwasp"

    def __init__(self, corpus: Corpus) -> None:
        self._count = corpus.documents_count
        self._average_length = corpus.average_length
        words = [word_of(i) for i in range(int(corpus.tokens.max()) + 1)]
        self._lexicon = _core.Lexicon()
        self._lexicon.add_words("".join(words).encode(), np.full(len(words), 5, np.uint32))
        self._segment = _segment_of(corpus)
        self._reader = _core.Reader([(0, self._count, [self._segment], None)], 1)
        self._column = percentile_column(self._count)

    @property
    def size_mb(self) -> float:
        return len(self._segment) * self._segment.itemsize / 1e6

    def any_of(self, words: Sequence[str]) -> Search:
        return lambda: self._top_k(words, False, None)

    def all_of(self, words: Sequence[str]) -> Search:
        return lambda: self._top_k(words, True, None)

    def filtered(self, words: Sequence[str], percent: int) -> Search:
        """The filter's bitmap is computed inside."""
        return lambda: self._top_k(words, False, self._accept(percent))

    def masked(self, words: Sequence[str], percent: int) -> Search:
        """The filter's bitmap is at hand."""
        accept = self._accept(percent)
        return lambda: self._top_k(words, False, accept)

    def _accept(self, percent: int) -> NDArray[np.uint64]:
        bitmap = np.zeros((self._count + 63) // 64, np.uint64)
        _core.range_bitmap(self._column, 0, percent - 1, bitmap)
        return bitmap

    def _top_k(self, words: Sequence[str], all_words: bool, accept: NDArray[np.uint64] | None, idf: Any = None) -> Hits:
        ids = [self._lexicon.find(word) for word in words]
        frequencies = np.array([_core.document_frequency(self._reader, 0, i) for i in ids], np.float64)
        weights = np.log1p((self._count - frequencies + 0.5) / (frequencies + 0.5)) if idf is None else idf(frequencies)
        terms = [(0, i, weight, K1, B, self._average_length) for i, weight in zip(ids, weights.tolist(), strict=True)]
        lids, scores, *_ = _core.best(self._reader, terms, [], HITS, all_words, False, accept)
        return list(zip(scores.tolist(), lids.tolist(), strict=True))

    def any_of_as_pisa(self, words: Sequence[str]) -> Search:
        """With PISA's idf, which is next to nothing for words that half of the documents have."""

        def idf(f: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.maximum(1e-6, np.log((self._count - f + 0.5) / (f + 0.5)))

        return lambda: self._top_k(words, False, None, idf)

    def phrase(self, words: Sequence[str]) -> Search:
        return lambda: self._phrase(words)

    def _phrase(self, words: Sequence[str]) -> Hits:
        ids = np.array([self._lexicon.find(word) for word in words], np.uint32)
        lids, offsets, _ = _core.phrase(self._reader, 0, ids, None)
        lengths = np.empty(len(lids), np.int32)
        _core.field_lengths(self._reader, 0, lids, lengths)
        frequency = np.diff(offsets).astype(np.float64)
        weight = np.log1p((self._count - len(lids) + 0.5) / (len(lids) + 0.5))
        scores = weight * frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * lengths / self._average_length))
        best = np.argpartition(-scores, HITS)[:HITS] if len(scores) > HITS else np.arange(len(scores))
        best = best[np.lexsort((lids[best], -scores[best]))]
        return list(zip(scores[best].tolist(), lids[best].tolist(), strict=True))


def _segment_of(corpus: Corpus) -> NDArray[Any]:
    segments = []
    for start in range(0, corpus.documents_count, BATCH_DOCUMENTS):
        end = min(start + BATCH_DOCUMENTS, corpus.documents_count)
        a, b = int(corpus.offsets[start]), int(corpus.offsets[end])
        offsets = corpus.offsets[start : end + 1] - corpus.offsets[start]
        segments.append(_core.invert(corpus.tokens[a:b], corpus.positions[a:b], offsets, corpus.average_length))
    every = np.arange(corpus.documents_count, dtype=np.uint32)
    return _core.merge(segments, every, corpus.documents_count, corpus.average_length)


class Tantivy:
    """tantivy-py, one merged segment on disk, mapped."""

    name = "tantivy"

    def __init__(self, corpus: Corpus) -> None:
        import tantivy

        self._tantivy = tantivy
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="whitespace_only", index_option="position")
        builder.add_integer_field("percentile", indexed=True, fast=True)
        builder.add_integer_field("number", fast=True)
        self._schema = builder.build()
        path = CACHE / f"tantivy-{corpus.name.replace(' ', '')}"
        fresh = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        self._index = tantivy.Index(self._schema, str(path))
        analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer("whitespace_only", analyzer)
        if fresh:
            self._fill(corpus)
        self._index.reload()
        self._searcher = self._index.searcher()
        self.segments_count = self._searcher.num_segments

    def _fill(self, corpus: Corpus) -> None:
        """One thread with room for everything, so that one segment comes out."""
        writer = self._index.writer(heap_size=4_000_000_000, num_threads=1)
        column = percentile_column(corpus.documents_count)
        for number, text in enumerate(corpus.texts()):
            writer.add_document(self._tantivy.Document(text=text, percentile=int(column[number]), number=number))
        writer.commit()
        writer.wait_merging_threads()

    def any_of(self, words: Sequence[str]) -> Search:
        return self._search(self._joined(words, self._tantivy.Occur.Should))

    def all_of(self, words: Sequence[str]) -> Search:
        return self._search(self._joined(words, self._tantivy.Occur.Must))

    def phrase(self, words: Sequence[str]) -> Search:
        return self._search(self._tantivy.Query.phrase_query(self._schema, "text", list(words)))

    def filtered(self, words: Sequence[str], percent: int) -> Search:
        """By the inverted index up to 10 %, by the column above: its faster way in each case."""
        t = self._tantivy
        limits = t.Query.range_query(
            self._schema, "percentile", t.FieldType.Integer, 0, percent - 1, use_inverted_index=percent <= 10
        )
        silent = t.Query.const_score_query(limits, 0.0)
        must = [(t.Occur.Must, self._joined(words, t.Occur.Should)), (t.Occur.Must, silent)]
        return self._search(t.Query.boolean_query(must))

    def _joined(self, words: Sequence[str], occur: Any) -> Any:
        query = self._tantivy.Query
        terms = [query.term_query(self._schema, "text", word, "freq") for word in words]
        return terms[0] if len(terms) == 1 else query.boolean_query([(occur, term) for term in terms])

    def _search(self, query: Any) -> Search:
        searcher = self._searcher
        return lambda: [(score, at.doc) for score, at in searcher.search(query, HITS, count=False).hits]


class Pisa:
    """PISA through the extension module of pyterrier-pisa, without pandas or PyTerrier around it."""

    name = "PISA"

    def __init__(self, corpus: Corpus, encoding: str = "block_simdbp") -> None:
        self._module = _pisa_module()
        path = CACHE / f"pisa-{corpus.name.replace(' ', '')}"
        if not (path / "fwd.doclex").exists():
            path.mkdir(parents=True, exist_ok=True)
            plain = path / "plain.txt"
            with plain.open("w") as file:
                file.writelines(f"{number} {text}\n" for number, text in enumerate(corpus.texts()))
            with _silence():
                self._module.index(str(plain), str(path), "", 100_000, 1)
            plain.unlink()
        self._context = self._module.RetrievalContext()
        with _silence():
            self._module.prepare_index(self._context, str(path), encoding, "bm25", "", bm25_k1=K1, bm25_b=B)

    def run(self, queries: Iterable[Sequence[str]], count: int, algorithm: str = "block_max_maxscore") -> list[Hits]:
        """Answers queries in one call. It asks the iterable for the next one after each: there time can be taken."""
        numbers, ranks = np.empty(count * HITS, np.int32), np.empty(count * HITS, np.int32)
        names, scores = np.empty(count * HITS, object), np.empty(count * HITS, np.float32)
        source = _Sized(((i, dict.fromkeys(words, 1.0)) for i, words in enumerate(queries)), count)
        size = self._module.retrieve(
            self._context, algorithm, source, k=HITS, threads=1, query_weighted=0, pretokenised=1,
            result_qidxs=numbers, result_docnos=names, result_ranks=ranks, result_scores=scores,
        )  # fmt: skip
        hits: list[Hits] = [[] for _ in range(count)]
        for at in range(size):
            hits[numbers[at]].append((float(scores[at]), int(names[at])))
        return hits


class _Sized:
    def __init__(self, items: Iterator[tuple[int, dict[str, float]]], count: int) -> None:
        self._items = items
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[int, dict[str, float]]]:
        return self._items


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """PISA logs to standard output and error from C++."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        yield
    finally:
        for number, copy in enumerate(kept, 1):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)


def _pisa_module() -> Any:
    """The extension alone: the package around it would start a Java virtual machine's bridge."""
    package = importlib.util.find_spec("pyterrier_pisa")
    if package is None or not package.submodule_search_locations:
        raise ImportError("pyterrier-pisa is not installed")
    path = next(Path(package.submodule_search_locations[0]).glob("_pisathon*.so"))
    loader = importlib.machinery.ExtensionFileLoader("pyterrier_pisa._pisathon", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module
