"""The access log: a line of JSON for each answer, in Vespa's form, written by a thread beside the event loop.

    note (event loop) → a bounded queue → the thread (`gathering`): lines → the file (`log_files`)

No header is written but those that Vespa names: neither tokens nor keys are among them, and in the query string the
values of parameters that are named like some are left out.

Vespa: https://docs.vespa.ai/en/operations/access-logging.html, JSONFormatter.java (container-core)
Differs: there is no trace in it, and no connection log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import unquote_plus

import orjson

from paperwasp.admin.monitoring.log_files import LogFiles
from paperwasp.admin.monitoring.requests import SearchFacts
from paperwasp.base.patterns import compile_later
from paperwasp.http.messages import Answer, Request
from paperwasp.http.observing import Exchanged, Peer
from paperwasp.limits.monitoring import (
    ACCESS_LOG_CHARACTERS,
    ACCESS_LOG_QUEUE_CHARACTERS,
    ACCESS_LOG_QUEUE_LENGTH,
    GATHERED_AT_ONCE,
    GATHERING_SECONDS,
)

# Work that the event loop leaves to a thread beside it, gathered so that the thread is woken seldom.
#
# Adding costs the event loop a fraction of a microsecond and never waits. What finds the queue full is counted and left
# out. The thread takes what has come a few times a second at most, and does nothing while nothing comes.


_LOG: Final = logging.getLogger("paperwasp.monitoring")
Item = TypeVar("Item")


class Gathering(Generic[Item]):
    """A bounded queue and the thread that empties it. `add` is the event loop's; any thread may `close` it."""

    def __init__(self, name: str, work: Callable[[Sequence[Item]], None], most: int) -> None:
        """`work` is called on the thread with some items at a time, and with none when all are done for now; `most` may
        wait."""
        self._work = work
        self._most = most
        self._queue: deque[Item] = deque()
        self._is_awake = False
        self._wake = threading.Event()
        self._is_closed = False
        self.dropped = 0
        """Items that found no room."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, item: Item) -> None:
        if len(self._queue) >= self._most:
            self.dropped += 1
            return
        self._queue.append(item)
        if not self._is_awake:
            self._is_awake = True
            self._wake.set()

    def __len__(self) -> int:
        return len(self._queue)

    def close(self) -> None:
        """Works off what was added, and ends the thread."""
        self._is_closed = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._wake.wait()
            self._wake.clear()
            if not self._is_closed:
                time.sleep(GATHERING_SECONDS)  # what comes meanwhile is done together
            self._is_awake = False
            self._work_off()
        self._work_off()

    def _work_off(self) -> None:
        queue = self._queue
        try:
            while queue:
                self._work([queue.popleft() for _ in range(min(len(queue), GATHERED_AT_ONCE))])
            self._work(())
        except Exception:  # a defect costs what it was about
            _LOG.exception("%s failed", self._thread.name)


_SECRET: Final = compile_later(
    r"(?i)token|secret|passw|credential|authorization|api[-_.]?key|access[-_.]?key|signature"
)
_REMOTE_ADDRESSES: Final = ("x-forwarded-for", "y-ra", "yahooremoteip", "client-ip")
"""Headers that say who has asked a proxy, by precedence."""
_DEGRADATIONS: Final = ("match-phase", "timeout", "adaptive-timeout", "non-ideal-state")
_Entry = tuple[float, int, int, Peer, str, int, int, int, str, str, str, str, str, str, str | None, str, object]


class AccessLog:
    """The access log of one container. `note` is the event loop's; `close` may be called by any thread."""

    def __init__(self, files: LogFiles) -> None:
        self._files = files
        self._gathering = Gathering("access-log", self._write, ACCESS_LOG_QUEUE_LENGTH)
        self._characters = 0
        """Of the paths that wait: added up by who notes, and set to 0 when the thread has written all of them."""

    def note(self, port: int, exchange: Exchanged, request: Request, answer: Answer, elapsed_ns: int) -> None:
        """Has a line written for an answer on that port."""
        path, query, headers = request.raw_path, request.query, request.headers
        self._characters += len(path) + len(query)
        if self._characters >= ACCESS_LOG_QUEUE_CHARACTERS:
            self._gathering.dropped += 1
            return
        remote = None
        for name in _REMOTE_ADDRESSES:
            if name in headers:
                remote = headers[name][:ACCESS_LOG_CHARACTERS]
                break
        self._gathering.add(
            (
                time.time(),
                elapsed_ns,
                port,
                exchange.peer,
                exchange.line.version,
                exchange.sent_bytes,
                exchange.received_bytes,
                answer.status,
                request.method,
                path,
                query,
                headers.get("user-agent", "")[:ACCESS_LOG_CHARACTERS],
                request.host,
                request.scheme,
                remote,
                headers.get("y-rp", "") if remote is not None else "",
                answer.about,
            )
        )

    @property
    def lost(self) -> int:
        """Lines that are not in the log: too many waited, or the disk was full."""
        return self._gathering.dropped + self._files.lost_lines

    def close(self) -> None:
        """Writes what was noted."""
        self._gathering.close()
        self._files.close()

    def _write(self, entries: Sequence[_Entry]) -> None:
        if entries:
            self._files.write([line_of(entry) for entry in entries])
        else:
            self._characters = 0
            self._files.take_care()


def line_of(entry: _Entry) -> bytes:
    """The line of an answer, with its end."""
    now, elapsed_ns, port, peer, version, sent, received, status, method, path, query, agent, host, scheme = entry[:14]
    remote, remote_port, about = entry[14:]
    elapsed = elapsed_ns / 1e9
    address = _text(peer.address)
    uri = path[:ACCESS_LOG_CHARACTERS]
    if query:
        uri = f"{uri}?{_without_secrets(query[:ACCESS_LOG_CHARACTERS])}"
    line = (
        f'{{"ip":{address},"time":{now - elapsed:.3f},"duration":{elapsed:.3f},"responsesize":{sent},'
        f'"requestsize":{received},"code":{status},"method":{_text(method)},"uri":{_fresh_text(uri)},'
        f'"version":"{version}","agent":{_text(agent)},"host":{_text(host)},"scheme":"{scheme}","localport":{port},'
        f'"connection":"{port}-{peer.number}"'
    )
    if peer.certificate is not None:
        line += f',"ssl-principal":{_text("CN=" + peer.certificate.common_name)}'
    if remote is not None and remote != peer.address:
        line += f',"remoteaddr":{_text(remote)}'
        if remote_port.isascii() and remote_port.isdigit() and len(remote_port) <= _PORT_DIGITS:
            line += f',"remoteport":{int(remote_port)}'
    line += f',"peeraddr":{address},"peerport":{peer.port}'
    if about is not None:
        line += _search(cast(SearchFacts, about))
    return f"{line}}}\n".encode()


_PORT_DIGITS: Final = 5


def _search(about: SearchFacts) -> str:
    total_hits, hits, coverage, _, _ = about
    shown: dict[str, Any] = {"totalhits": total_hits, "hits": hits}
    if coverage is not None:
        shown["coverage"] = covered = {"coverage": coverage.percent, "documents": coverage.documents}
        degraded = {reason: True for reason in _DEGRADATIONS if reason in coverage.degraded}
        if degraded:
            shown["coverage"] = {**covered, "degraded": degraded}
    return f',"search":{orjson.dumps(shown).decode()}'


def _without_secrets(query: str) -> str:
    """The query string, with `***` for the values of parameters that are named like secrets."""
    plain = unquote_plus(query, errors="replace") if "%" in query else query
    if not _SECRET.search(plain):
        return query
    pairs = (part.partition("=") for part in query.split("&"))
    return "&".join(f"{name}{equals}{'***' if equals and _is_secret(name) else value}" for name, equals, value in pairs)


def _is_secret(name: str) -> bool:
    """Whether the parameter of that name, as it came, is named like a secret."""
    return _SECRET.search(unquote_plus(name, errors="replace")) is not None


def _fresh_text(text: str) -> str:
    try:
        return orjson.dumps(text).decode()
    except TypeError:  # text that no UTF-8 can say
        return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


_text = lru_cache(maxsize=1024)(_fresh_text)
"""A string as JSON; of strings that come again it is kept."""
