"""The documents and queries of the benchmarks, as token numbers.

By default the docstrings of the Python that runs this, which every machine has. BENCH_CORPUS names a .jsonl.xz file of
records with `title` and `body` instead, and BENCH_QUERIES a text file with one query a line. Tokens are made once, by
the service's own tokenizer, and kept in bench/.cache; every engine gets the same tokens.
"""

from __future__ import annotations

import importlib.util
import json
import lzma
import os
import random
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core

CACHE = Path(__file__).parent / ".cache"
SEED = 20
TITLES_COUNT = 1000
_WORD = re.compile(r"[A-Za-z0-9]+(?:[-.'][A-Za-z0-9]+)*")
"""What no engine reads as an operator: also `two-dimensional`, `os.path` and `don't`."""
RARE_DOCUMENTS_COUNT = 2
"""Words in no more documents than this are new words in every repetition, as rare words are in real growth."""

Queries = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Corpus:
    """`tokens[offsets[d]:offsets[d + 1]]` are the word numbers of document d; queries and titles are lists of them."""

    name: str
    tokens: NDArray[np.uint32]
    positions: NDArray[np.uint32]
    offsets: NDArray[np.uint64]
    queries: Queries
    titles: Queries

    @property
    def documents_count(self) -> int:
        return len(self.offsets) - 1

    @property
    def average_length(self) -> float:
        return len(self.tokens) / self.documents_count

    def texts(self) -> Iterator[str]:
        """Every document as words joined by spaces, for the peers."""
        words = np.array([word_of(i) for i in range(int(self.tokens.max()) + 1)], dtype=object)
        for start in range(0, self.documents_count, 1000):
            end = min(start + 1000, self.documents_count)
            first = int(self.offsets[start])
            some = words[self.tokens[first : int(self.offsets[end])]]
            for d in range(start, end):
                yield " ".join(some[int(self.offsets[d]) - first : int(self.offsets[d + 1]) - first])


def word_of(number: int) -> str:
    """A word that every peer's tokenizer leaves as it is: five letters that spell the number."""
    letters = []
    for _ in range(5):
        number, letter = divmod(number, 26)
        letters.append(chr(97 + letter))
    return "".join(letters)


def load(copies: int = 1, documents_limit: int | None = None) -> Corpus:
    """The corpus, repeated `copies` times with another vocabulary each."""
    base = _load_base(documents_limit)
    return base if copies == 1 else _repeated(base, copies)


def _load_base(documents_limit: int | None) -> Corpus:
    source, queries = os.environ.get("BENCH_CORPUS"), os.environ.get("BENCH_QUERIES")
    name = Path(source).name.split(".")[0] if source else "pydoc"
    key = blake2b(f"{source} {queries} {documents_limit} {sysconfig.get_python_version()}".encode(), digest_size=6)
    saved = CACHE / f"tokens-{name}-{key.hexdigest()}.npz"
    if not saved.exists():
        CACHE.mkdir(exist_ok=True)
        save: Callable[..., None] = np.savez  # its stub takes any keyword for the flag `allow_pickle`
        save(saved, **_tokenized(records(), Path(queries) if queries else None, documents_limit))
    with np.load(saved) as arrays:
        return Corpus(
            f"{name} {len(arrays['offsets']) - 1:,}",
            arrays["tokens"], arrays["positions"], arrays["offsets"],
            _unpacked(arrays["queries"]), _unpacked(arrays["titles"]),
        )  # fmt: skip


def records() -> Iterator[tuple[str, str]]:
    """(title, body) of every document."""
    source = os.environ.get("BENCH_CORPUS")
    return _records(Path(source)) if source else _docstrings()


def _records(path: Path) -> Iterator[tuple[str, str]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record["title"], record["body"]


def pydoc(name: str = "index_pydoc") -> ModuleType:
    """A module of the demo; the reader of docstrings, if no other is asked for."""
    path = Path(__file__).parents[1] / "examples" / "pydoc" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def query_texts() -> list[str]:
    """Queries as people typed them: those of BENCH_QUERIES, or parts of titles.

    Only their words: `*args` asks for what begins with it and `-1` leaves something out, but not for every engine.
    """
    queries = os.environ.get("BENCH_QUERIES")
    texts = Path(queries).read_text().splitlines() if queries else _spans([title for title, _ in records()])
    plain = (" ".join(_WORD.findall(_ascii(text))) for text in texts)
    return [text for text in plain if text]


def _docstrings() -> Iterator[tuple[str, str]]:
    reader = pydoc()
    library = [root for root in reader.installation_roots() if root.package == "python"]
    for document in reader.documents(library):
        text = document["fields"]["documentation"]
        if text:
            yield text.split("\n", 1)[0], text


def _tokenized(
    records: Iterator[tuple[str, str]], queries: Path | None, documents_limit: int | None
) -> dict[str, NDArray[np.generic]]:
    lexicon = _core.Lexicon()
    texts: list[str] = []
    titles: list[str] = []
    for title, body in records:
        if len(texts) == documents_limit:
            break
        texts.append(_ascii(f"{title} {body}"))
        titles.append(_ascii(title))
    tokens, positions, offsets, _ = lexicon.tokenize(texts, np.arange(len(texts), dtype=np.uint32), len(texts))
    spans = queries.read_text().splitlines() if queries else _spans(titles)
    return {
        "tokens": np.array(tokens), "positions": np.array(positions), "offsets": np.array(offsets),
        "queries": _packed(_known(lexicon, [_ascii(span) for span in spans], len(lexicon))),
        "titles": _packed(_known(lexicon, titles[:TITLES_COUNT], len(lexicon))),
    }  # fmt: skip


def _ascii(text: str) -> str:
    return text.encode("ascii", "replace").decode().replace("?", " ")


def _spans(titles: Sequence[str]) -> list[str]:
    """Queries as people type them, cut from titles by a seeded choice."""
    choice = random.Random(SEED)
    spans = []
    for title in choice.choices(titles, k=2000):
        words = title.split()
        length = choice.choices(range(1, 6), weights=(20, 30, 25, 15, 10))[0]
        start = choice.randrange(max(1, len(words) - length + 1))
        spans.append(" ".join(words[start : start + length]))
    return spans


def _known(lexicon: _core.Lexicon, texts: list[str], known_count: int) -> list[list[int]]:
    """The words of each text that documents have, each once."""
    tokens, _, offsets, _ = lexicon.tokenize(texts, np.arange(len(texts), dtype=np.uint32), len(texts))
    rows = [tokens[int(a) : int(b)] for a, b in pairwise(offsets)]
    found = [list(dict.fromkeys(int(t) for t in row if t < known_count)) for row in rows]
    return [row for row in found if row]


def _packed(rows: list[list[int]]) -> NDArray[np.int64]:
    return np.array([value for row in rows for value in (*row, -1)], np.int64)


def _unpacked(values: NDArray[np.int64]) -> list[list[int]]:
    ends = np.flatnonzero(values == -1)
    return [part[part >= 0].tolist() for part in np.split(values, ends)][:-1]


def _repeated(base: Corpus, copies: int) -> Corpus:
    """Copy c swaps words for others of like document frequency, so that frequencies keep their shape."""
    frequency = document_frequencies(base)
    maps = [_rotated(frequency, c, copies) for c in range(copies)]
    sizes = np.diff(base.offsets)
    offsets = np.concatenate([[0], np.cumsum(np.tile(sizes, copies))]).astype(np.uint64)
    return Corpus(
        f"{base.name} times {copies}",
        np.concatenate([m[base.tokens] for m in maps]),
        np.tile(base.positions, copies),
        offsets,
        [[int(maps[i % copies][t]) for t in query] for i, query in enumerate(base.queries)],
        [[int(maps[i % copies][t]) for t in title] for i, title in enumerate(base.titles)],
    )


def document_frequencies(corpus: Corpus) -> NDArray[np.int64]:
    documents = np.repeat(np.arange(corpus.documents_count, dtype=np.uint64), np.diff(corpus.offsets).astype(np.int64))
    pairs = np.unique((documents << np.uint64(32)) | corpus.tokens)
    return np.bincount((pairs & np.uint64(0xFFFFFFFF)).astype(np.int64), minlength=int(corpus.tokens.max()) + 1)


def _rotated(frequency: NDArray[np.int64], copy: int, copies: int) -> NDArray[np.uint32]:
    """Word number → word number in this copy. Frequencies within 5 % of each other are alike."""
    renamed = np.arange(len(frequency), dtype=np.uint32)
    if copy == 0:
        return renamed
    rare = frequency <= RARE_DOCUMENTS_COUNT
    renamed[rare] = len(frequency) + (copy - 1) * int(rare.sum()) + np.arange(int(rare.sum()))
    band = np.full(len(frequency), -1)
    band[~rare] = (np.log(frequency[~rare]) / np.log(1.05)).astype(np.int64)
    for one in np.unique(band[~rare]):
        alike = np.flatnonzero(band == one)
        renamed[alike] = np.roll(alike, copy * max(1, len(alike) // copies))
    return renamed
