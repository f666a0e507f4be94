"""Lucene over the same tokens, and bare behind HTTP: the Java program of bench/lucene as a process.

Maven fetches Lucene and compiles the program (`bench/java_program.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.corpus import CACHE, Corpus
from bench.engines import K1, Hits, percentile_column
from bench.java_program import JavaProgram
from bench.service import Running, process
from paperwasp.relevance.rankings import RankedDocument, Run
from tools.collections.collection import Collection

_PROGRAM = JavaProgram("Lucene", Path(__file__).parent / "lucene", CACHE / "lucene-build")
WARM_NANOSECONDS = 5_000_000_000
"""How long queries of a kind run before they count: the virtual machine compiles what it finds to be hot."""
PASSAGE_FIELDS = ("title", "body", "category", "year", "percentile")


def command(*arguments: str) -> list[str]:
    """Runs the program, which is built if need be. Errors: NotInstalled."""
    return _PROGRAM.command(*arguments, java=("-Xmx4g", "-XX:+UseSerialGC"))


def _index(kind: str, path: Path, documents: Iterable[Sequence[str]]) -> None:
    """Fills an index unless it is there."""
    if path.exists():
        return
    unfinished = path.with_name(f"{path.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    with subprocess.Popen(command(f"index-{kind}", str(unfinished)), stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        for values in documents:
            encoded = [value.encode() for value in values]
            child.stdin.write(b"".join(struct.pack(">I", len(value)) + value for value in encoded))
    if child.returncode != 0:
        raise RuntimeError("Lucene's index could not be filled")
    unfinished.rename(path)


class Lucene:
    """One merged segment, mapped, searched by a process of its own that says the CPU time of its thread."""

    name = "Lucene"

    def __init__(self, corpus: Corpus) -> None:
        path = CACHE / f"lucene-{corpus.name.replace(' ', '')}"
        column = percentile_column(corpus.documents_count)
        texts = ((text, str(percentile)) for text, percentile in zip(corpus.texts(), column, strict=True))
        _index("tokens", path, texts)
        start = command("answer", str(path))
        self._process = subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.segments_count = int(self._read().removeprefix("segments "))

    def any_of(self, words: Sequence[str]) -> Question:
        return Question(self, f"any_of 0 {' '.join(words)}")

    def all_of(self, words: Sequence[str]) -> Question:
        return Question(self, f"all_of 0 {' '.join(words)}")

    def phrase(self, words: Sequence[str]) -> Question:
        return Question(self, f"phrase 0 {' '.join(words)}")

    def filtered(self, words: Sequence[str], percent: int) -> Question:
        """Lucene takes points or column, whichever it thinks faster."""
        return Question(self, f"filtered {percent} {' '.join(words)}")

    def masked(self, words: Sequence[str], percent: int) -> Question:
        """Lucene's cache keeps the filter's bits after some queries."""
        return Question(self, f"masked {percent} {' '.join(words)}")

    def ask(self, line: str) -> list[str]:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read().split(" ")

    def warm(self, questions: Sequence[Question]) -> None:
        """Asks them over and over, for as long as compiling takes."""
        spent = 0
        for question in itertools.cycle(questions):
            spent += question.nanoseconds()
            if spent > WARM_NANOSECONDS:
                return

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("Lucene's process has ended")
        return line.rstrip("\n")


@dataclass(frozen=True)
class Question:
    """A query as a line of the program's protocol."""

    engine: Lucene
    line: str

    def __call__(self) -> Hits:
        """Lucene leaves out the factor k1 + 1, which every score has."""
        _, *found = self.engine.ask(self.line)
        return [(float(score) * (K1 + 1), int(number)) for score, number in zip(found[::2], found[1::2], strict=True)]

    def nanoseconds(self) -> int:
        """CPU time of one search, from a query object to ten hits."""
        return int(self.engine.ask(self.line)[0])


def rank(collection: Collection, analyzer: str, hits: int) -> Run:
    """The best documents of a collection for each of its queries by BM25, title and text being one field; `analyzer` is
    `krovetz`, or `porter`, which leaves stop words out. Errors: NotInstalled."""
    texts = [(each.id, f"{each.title} {each.text}") for each in collection.documents]
    content = _pairs(texts) + _pairs(list(collection.queries.items()))
    done = subprocess.run(command("evaluate", analyzer, str(hits)), input=content, capture_output=True, check=True)
    found: dict[str, list[RankedDocument]] = {query: [] for query in collection.queries}
    for line in done.stdout.decode().splitlines():
        query, document, score = line.split("\t")
        found[query].append(RankedDocument(document, float(score)))
    return found


def _pairs(pairs: Sequence[tuple[str, str]]) -> bytes:
    """How many there are, and the length of each text and that."""
    encoded = [text.encode() for pair in pairs for text in pair]
    return struct.pack(">I", len(pairs)) + b"".join(struct.pack(">I", len(text)) + text for text in encoded)


@contextlib.contextmanager
def serving(feed_file: Path) -> Iterator[Running]:
    """Lucene bare behind HTTP, with the documents of a feed file in one segment. Errors: NotInstalled."""
    path = CACHE / f"lucene-{feed_file.stem}"
    _index("passages", path, _passages(feed_file))
    with process(command("serve", str(path))) as server:
        yield server


def _passages(feed_file: Path) -> Iterator[Sequence[str]]:
    with feed_file.open(encoding="utf-8") as lines:
        for line in lines:
            operation = json.loads(line)
            yield (operation["put"], *(str(operation["fields"][name]) for name in PASSAGE_FIELDS))
