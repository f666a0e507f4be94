"""Visits: all documents of a service, or a selection of them, read in parallel slices and written to a file."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, Full, Queue
from typing import IO, Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import orjson
from msgspec import Struct, field
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from paperwasp.base.patterns import compile_later
from paperwasp.client.connection import ANYBODY, Access, Connection, Unreachable
from paperwasp.client.visit_tables import write_csv
from paperwasp.errors import InvalidInput, PaperwaspError

# One part of a visit: a slice of a bucket space of a content cluster, in chunks, each with the place behind it.
#
# A chunk is given when the service has said where to go on behind it. So whatever breaks, no document is given twice.
# Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html


SPACES: Final = ("global", "default")
"""The bucket spaces: documents that are on all nodes, which others may refer to, come first."""
_PATH: Final = "/document/v1/"
_ACCEPT: Final = {"Accept": "application/json, application/jsonl"}
_LINES: Final = "application/jsonl"
_RETRIES: Final = 10
_FIRST_WAIT_SECONDS: Final = 0.05
_LONGEST_WAIT_SECONDS: Final = 5.0
_PAGE_DOCUMENTS: Final = 1024
_MOST_BYTES: Final = 1 << 24
"""Of lines that are held until the service says where to go on."""
_SHOWN_BYTES: Final = 80
_CLUSTERS: Final = compile_later(r"no content cluster '\*', only (.*)", re.IGNORECASE)
_QUOTED: Final = compile_later(r"'([^']*)'")
_DOCUMENTS: Final = (b'{"put"', b'{"remove"')


class VisitOptions(Struct, frozen=True):
    """Which documents are visited, and how."""

    url: str
    access: Access = ANYBODY
    cluster: str | None = None
    """None: all content clusters."""
    schema: str | None = None
    """A document type; those that inherit it are visited, too."""
    selection: str | None = None
    field_set: str | None = None
    slices: int = 1
    timeout_seconds: float | None = None

    def full_selection(self) -> str | None:
        """The selection with that of the document type."""
        if self.schema and self.selection:
            return f"{self.schema} and ({self.selection})"
        return self.schema or self.selection

    def what(self) -> dict[str, object]:
        """The settings that a visit which goes on must share with the one that was interrupted."""
        return {
            "cluster": self.cluster,
            "selection": self.full_selection(),
            "fieldSet": self.field_set,
            "slices": self.slices,
        }


class VisitPart(NamedTuple):
    """A slice of a bucket space of a cluster."""

    cluster: str
    space: str
    slice: int


class Chunk(NamedTuple):
    """Documents of a part as lines of JSON, each with its end, and where the visit goes on behind them."""

    part: VisitPart
    lines: list[bytes]
    token: str | None
    """None where the service has not said it."""
    percent: float
    is_last: bool


class _Broken(Exception):
    """The answer ended, or was refused, in a way that makes another attempt worth while."""


def find_parts(options: VisitOptions) -> list[VisitPart]:
    """The parts of a visit, in the order in which they are begun. Errors: Unreachable, InvalidInput."""
    clusters = [options.cluster] if options.cluster else _find_clusters(options)
    slices = range(options.slices)
    return [VisitPart(cluster, space, number) for space in SPACES for cluster in clusters for number in slices]


def _find_clusters(options: VisitOptions) -> list[str]:
    """All content clusters: the service names them to whoever asks for one that there is not."""
    asked = urlencode({"cluster": "*", "wantedDocumentCount": 1})
    with closing(Connection(options.url, access=options.access)) as connection:
        message = str(connection.json("GET", f"{_PATH}?{asked}").get("message", ""))
    match = _CLUSTERS.search(message)
    if match is None:
        raise InvalidInput(f"{options.url} does not say which content clusters there are: {message}")
    return _QUOTED.findall(match[1])


def read_part(options: VisitOptions, part: VisitPart, token: str | None) -> Iterator[Chunk]:
    """Yields the chunks of a part from `token` on. What breaks off, or is refused since there is too much to do, is
    begun again behind the last chunk. Errors: Unreachable, InvalidInput."""
    attempts, read = 0, _read_stream
    with closing(Connection(options.url, access=options.access)) as connection:
        while True:
            try:
                for chunk in read(connection, options, part, token):
                    token, attempts = chunk.token or token, 0
                    yield chunk
                    if chunk.is_last:
                        return
            except _NotStreamed:
                read = _read_pages
            except (_Broken, Unreachable) as error:
                attempts += 1
                if attempts > _RETRIES:
                    message = f"Visiting '{part.cluster}' failed {attempts} times; the last time: {error}"
                    raise InvalidInput(message) from None
                time.sleep(min(_FIRST_WAIT_SECONDS * 2**attempts, _LONGEST_WAIT_SECONDS))
            connection.close()


class _NotStreamed(Exception):
    """The service knows no JSON lines."""


def _read_stream(connection: Connection, options: VisitOptions, part: VisitPart, token: str | None) -> Iterator[Chunk]:
    """The chunks of an answer of JSON lines."""
    path = _path(options, part, token, {"stream": "true"})
    answer = connection.stream(path, _ACCEPT)
    if answer.status != 200:
        _refuse(answer.status, b"".join(answer.lines))
    if _LINES not in answer.content_type:
        raise _NotStreamed
    lines: list[bytes] = []
    held, message = 0, ""
    for line in answer.lines:
        content = None if line.startswith(_DOCUMENTS) and line.endswith(b"\n") else _read(line)
        if content is None or "put" in content or "remove" in content:
            lines.append(_to_feed(line if line.endswith(b"\n") else line + b"\n"))
            held += len(line)
            if held < _MOST_BYTES:
                continue
            content = {"continuation": {}}
            yield Chunk(part, lines, None, 0.0, False)
        elif "message" in content:
            message = _text(content["message"])
            continue
        elif "continuation" in content:
            found = content["continuation"]
            percent = float(found.get("percentFinished", 0.0))
            is_last = "token" not in found
            yield Chunk(part, lines, found.get("token"), percent, is_last)
            if is_last:
                return
        else:
            continue
        lines, held = [], 0
    raise _Broken(message or "the answer ended before the visit did")


def _to_feed(line: bytes) -> bytes:
    """A line as feeding takes it: streams name each document twice, as `put` and as `id`."""
    quoted, has_id, rest = line.removeprefix(b'{"put":').partition(b',"id":')
    return b'{"put":' + quoted + rest[len(quoted) :] if has_id and rest.startswith(quoted) else line


def _read(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        raise _Broken(f"a line of the answer is cut off or no JSON: {line[:_SHOWN_BYTES]!r}") from None


def _read_pages(connection: Connection, options: VisitOptions, part: VisitPart, token: str | None) -> Iterator[Chunk]:
    """The chunks of answers of JSON objects, one request each."""
    while True:
        path = _path(options, part, token, {"wantedDocumentCount": str(_PAGE_DOCUMENTS)})
        status, content = connection.request("GET", path)
        if status != 200:
            _refuse(status, content)
        answer = orjson.loads(content)
        token = answer.get("continuation")
        lines = [orjson.dumps({"put": each["id"], "fields": each["fields"]}) + b"\n" for each in answer["documents"]]
        yield Chunk(part, lines, token, 0.0, token is None)
        if token is None:
            return


def _path(options: VisitOptions, part: VisitPart, token: str | None, more: Mapping[str, str]) -> str:
    timeout = options.timeout_seconds
    parameters = {
        "cluster": part.cluster,
        "bucketSpace": part.space,
        "selection": options.full_selection(),
        "fieldSet": options.field_set,
        "slices": str(options.slices) if options.slices > 1 else None,
        "sliceId": str(part.slice) if options.slices > 1 else None,
        "timeout": None if timeout is None else f"{round(timeout * 1000)}ms",
        "continuation": token,
        **more,
    }
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{_PATH}?{urlencode(given, quote_via=quote)}"


def _refuse(status: int, content: bytes) -> None:
    """Errors: _Broken for what may be otherwise later, InvalidInput."""
    try:
        message = _text(orjson.loads(content)["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = content[:200].decode(errors="replace")
    if status == 429 or status >= 500:
        raise _Broken(f"status {status}: {message}")
    raise InvalidInput(f"The visit was refused with status {status}: {message}")


def _text(message: Any) -> str:
    return str(message.get("text", message)) if isinstance(message, dict) else str(message)


# Where a visit is: what is kept in a file beside its output, so that it can go on after an interruption.


ENDING: Final = ".continue"
_SAVE_SECONDS: Final = 1.0


class VisitState(Struct):
    """The place of each part, and how much of the output belongs to it."""

    what: dict[str, object]
    parts: list[VisitPart]
    tokens: list[str | None]
    """Of each part, where it goes on; None: at its beginning."""
    done: list[bool]
    documents: int = 0
    size: int = 0
    """The bytes of the output that hold these documents."""
    _saved: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(cls, options: VisitOptions, parts: Sequence[VisitPart]) -> VisitState:
        return cls(options.what(), list(parts), [None] * len(parts), [False] * len(parts))

    @classmethod
    def load(cls, path: Path, options: VisitOptions) -> VisitState:
        """The state that a visit left. Errors: InvalidInput where there is none, or one of another visit."""
        try:
            content = orjson.loads(path.read_bytes())
            state = cls(
                dict(content["what"]),
                [VisitPart(*each) for each in content["parts"]],
                list(content["tokens"]),
                list(content["done"]),
                int(content["documents"]),
                int(content["size"]),
            )
        except OSError as error:
            raise InvalidInput(f"Could not read '{path}': {error.strerror}") from None
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            raise InvalidInput(f"'{path}' is not what an interrupted visit leaves") from None
        asked = options.what()
        for name, value in state.what.items():
            other = asked.get(name)
            if other != value:
                raise InvalidInput(f"'{path}' is of a visit with {name} {value!r}, and this one has {other!r}")
        return state

    def advance(self, chunk: Chunk, size: int) -> None:
        """Notes that a chunk is in the output, which has `size` bytes now."""
        place = self.parts.index(chunk.part)
        self.documents += len(chunk.lines)
        if chunk.token is not None:
            self.tokens[place] = chunk.token
        self.done[place] = chunk.is_last
        if chunk.token is not None or chunk.is_last:
            self.size = size

    def save_if_due(self, path: Path) -> None:
        if time.monotonic() - self._saved >= _SAVE_SECONDS:
            self.save(path)

    def save(self, path: Path) -> None:
        """Writes the state; a crash leaves the one before or this one."""
        content = {
            "what": self.what,
            "parts": [list(part) for part in self.parts],
            "tokens": self.tokens,
            "done": self.done,
            "documents": self.documents,
            "size": self.size,
        }
        beside = path.with_name(path.name + ".new")
        beside.write_bytes(orjson.dumps(content))
        beside.replace(path)
        self._saved = time.monotonic()


# Visits in parallel slices, writes what comes, and keeps the place.


STANDARD_OUTPUT: Final = Path("-")
_WAIT_SECONDS: Final = 0.2
_QUEUED: Final = 4
_LINE_ENDINGS: Final = (".jsonl", ".ndjson", ".json")
_NEEDS_ARROW: Final = "Parquet needs pyarrow, which is not installed: pip install pyarrow"


def _write_parquet(lines: Path, output: Path) -> None:
    """Errors: ModuleNotFoundError without pyarrow."""
    from paperwasp.client.visit_parquet import write_parquet

    write_parquet(lines, output)


def _check_parquet() -> None:
    """Errors: InvalidInput where Parquet cannot be written, before anything is visited."""
    if find_spec("pyarrow") is None:
        raise InvalidInput(_NEEDS_ARROW)


_TABLES: Final[dict[str, Callable[[Path, Path], None]]] = {
    ".csv": write_csv,
    ".tsv": write_csv,
    ".parquet": _write_parquet,
}


class VisitOutput(Struct, frozen=True):
    """Where documents go."""

    path: Path
    """`-`: standard output."""
    continue_from: Path | None = None
    """The state of an interrupted visit, from which this one goes on."""

    def check(self) -> None:
        """Errors: InvalidInput for an ending that says no format."""
        if self.path != STANDARD_OUTPUT and self.path.suffix.lower() not in (*_LINE_ENDINGS, *_TABLES):
            known = ", ".join((*_LINE_ENDINGS, *_TABLES))
            raise InvalidInput(f"--output: the ending of '{self.path}' is none of {known}")
        if self.path.suffix.lower() == ".parquet":
            _check_parquet()
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
    groups: dict[tuple[str, str], list[tuple[VisitPart, str | None]]] = {}
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


def _read_together(options: VisitOptions, parts: Sequence[tuple[VisitPart, str | None]]) -> Iterator[Chunk]:
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

    def work(part: VisitPart, token: str | None) -> None:
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
