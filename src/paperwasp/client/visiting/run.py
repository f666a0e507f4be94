"""Visits in parallel slices, writes what comes, and keeps the place."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Empty, Full, Queue
from typing import IO, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from paperwasp.base.records import dataclass
from paperwasp.client.visiting.parts import Chunk, Part, VisitOptions, find_parts, read_part
from paperwasp.client.visiting.state import ENDING, VisitState
from paperwasp.client.visiting.tables import check_parquet, write_csv, write_parquet
from paperwasp.errors import InvalidInput, PaperwaspError

STANDARD_OUTPUT: Final = Path("-")
_WAIT_SECONDS: Final = 0.2
_QUEUED: Final = 4
_LINES: Final = (".jsonl", ".ndjson", ".json")
_TABLES: Final[dict[str, Callable[[Path, Path], None]]] = {
    ".csv": write_csv,
    ".tsv": write_csv,
    ".parquet": write_parquet,
}


@dataclass(frozen=True, slots=True)
class VisitOutput:
    """Where documents go."""

    path: Path
    """`-`: standard output."""
    continue_from: Path | None = None
    """What an interrupted visit left: it goes on from there."""

    def check(self) -> None:
        """Errors: InvalidInput for an ending that says no format."""
        if self.path != STANDARD_OUTPUT and self.path.suffix.lower() not in (*_LINES, *_TABLES):
            known = ", ".join((*_LINES, *_TABLES))
            raise InvalidInput(f"--output: the ending of '{self.path}' is none of {known}")
        if self.path.suffix.lower() == ".parquet":
            check_parquet()
        if self.path == STANDARD_OUTPUT and self.continue_from is not None:
            raise InvalidInput("--continue-from needs an --output to write on")

    @property
    def lines_path(self) -> Path:
        """The file that is written as documents come: the output, or what a table is made of at the end."""
        return self.path.with_name(self.path.name + ".part") if self.path.suffix.lower() in _TABLES else self.path

    @property
    def state_path(self) -> Path:
        return self.path.with_name(self.path.name + ENDING)


def visit(options: VisitOptions, output: VisitOutput) -> int:
    """Writes all documents of a visit; gives their number. Errors: Unreachable, InvalidInput; what was written stays,
    and beside it a file to go on from."""
    output.check()
    console = Console(stderr=True)
    if output.continue_from is not None:
        state = VisitState.load(output.continue_from, options)
    else:
        state = VisitState.begin(options, find_parts(options))
    with ExitStack() as stack:
        file = stack.enter_context(_open(output, state))
        shown = _Shown(stack.enter_context(_progress_bar(console)), state)
        try:
            _write_all(options, output, state, file, shown)
        except BaseException:
            if output.path != STANDARD_OUTPUT:
                state.save(output.state_path)
                say = f"{state.documents} documents are written. To go on: --continue-from {output.state_path}"
                console.print(Text(say), soft_wrap=True)
            raise
    if output.path != STANDARD_OUTPUT:
        _finish(output)
    return state.documents


def _finish(output: VisitOutput) -> None:
    if make := _TABLES.get(output.path.suffix.lower()):
        make(output.lines_path, output.path)
        output.lines_path.unlink()
    output.state_path.unlink(missing_ok=True)


@contextmanager
def _open(output: VisitOutput, state: VisitState) -> Iterator[IO[bytes]]:
    if output.path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = output.lines_path
    if output.continue_from is None:
        with path.open("wb") as file:
            yield file
        return
    if not path.is_file() or path.stat().st_size < state.size:
        raise InvalidInput(f"'{path}' does not hold what '{output.continue_from}' goes on from: begin again without it")
    with path.open("r+b") as file:
        file.truncate(state.size)
        file.seek(state.size)
        yield file


def _write_all(options: VisitOptions, output: VisitOutput, state: VisitState, file: IO[bytes], shown: _Shown) -> None:
    """Writes the parts, all slices of one bucket space at a time."""
    groups: dict[tuple[str, str], list[tuple[Part, str | None]]] = {}
    for part, token, done in zip(state.parts, state.tokens, state.done, strict=True):
        if not done:
            groups.setdefault(part[:2], []).append((part, token))
    for group in groups.values():
        for chunk in _read_together(options, group):
            file.writelines(chunk.lines)
            if output.path != STANDARD_OUTPUT:
                file.flush()
                state.advance(chunk, file.tell())
                state.save_if_due(output.state_path)
            else:
                state.advance(chunk, 0)
            shown.report(chunk)


def _read_together(options: VisitOptions, parts: Sequence[tuple[Part, str | None]]) -> Iterator[Chunk]:
    """Yields the chunks of several parts as they come, a thread a part. Errors: the first of any of them."""
    queue: Queue[Chunk | PaperwaspError | None] = Queue(_QUEUED * len(parts))
    stop = threading.Event()

    def put(item: Chunk | PaperwaspError | None) -> None:
        while not stop.is_set():
            try:
                queue.put(item, timeout=_WAIT_SECONDS)
                return
            except Full:
                continue

    def work(part: Part, token: str | None) -> None:
        try:
            for chunk in read_part(options, part, token):
                put(chunk)
                if stop.is_set():
                    return
            put(None)
        except PaperwaspError as error:
            put(error)
        except Exception as error:  # whatever a service may send
            put(InvalidInput(f"The answer of {options.url} cannot be understood: {error!r}"))

    threads = [threading.Thread(target=work, args=each, daemon=True) for each in parts]
    for thread in threads:
        thread.start()
    try:
        ended = 0
        while ended < len(parts):
            try:
                item = queue.get(timeout=_WAIT_SECONDS)  # so that an interrupt is noticed
            except Empty:
                continue
            if item is None:
                ended += 1
            elif isinstance(item, Chunk):
                yield item
            else:
                raise item
    finally:
        stop.set()


class _Shown:
    """The progress of a visit."""

    def __init__(self, progress: Progress, state: VisitState) -> None:
        self._progress = progress
        self._state = state
        self._percents = {part: 100.0 if done else 0.0 for part, done in zip(state.parts, state.done, strict=True)}
        self._task = progress.add_task("Visiting", total=100.0 * max(len(state.parts), 1), counts="")

    def report(self, chunk: Chunk) -> None:
        self._percents[chunk.part] = max(self._percents[chunk.part], 100.0 if chunk.is_last else chunk.percent)
        counts = f"{self._state.documents} documents"
        self._progress.update(self._task, completed=sum(self._percents.values()), counts=counts)


def _progress_bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True)
