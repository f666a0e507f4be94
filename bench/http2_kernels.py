"""HTTP/2 by the kernel of the core, and by nghttp2: CPU time of the server's end for each request, without sockets.

One connection, whose client is h2: its bytes are recorded once, and given to each server in turn, round by round; the
least of the rounds counts. Every server makes the same objects of Python of each request (method, path, query, a
dictionary of headers, the body) and answers it with the same headers and body. nghttp2 is asked twice: by
`nghttp2_server.cpp`, which does no more than that, and by ngh2, a package that makes objects of all that happens.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import h2.config
import h2.connection
import h2.events
import nanobind

from bench.report import Report, Row
from paperwasp import limits
from paperwasp.core.http.http2 import Http2Connection, http2_header_block, http2_respond_all

SOURCE: Final = Path(__file__).with_name("nghttp2_server.cpp")
HEADERS: Final = [(b"content-type", b"application/json;charset=utf-8"), (b"vary", b"Accept-Encoding")]
CLIENT_WINDOW: Final = 2**24
"""As clients that expect many answers have it."""


@dataclass(frozen=True)
class Options:
    requests_count: int = 4096
    rounds: int = 15


@dataclass(frozen=True)
class Work:
    """What a client asks: `together` requests in each of its writes."""

    name: str
    together: int
    answer: bytes
    method: str
    path: str
    body: bytes = b""

    def fields(self, number: int) -> list[tuple[str, str]]:
        pseudo = [(":method", self.method), (":authority", "localhost:8080"), (":scheme", "https")]
        path = (":path", self.path.format(number))
        length = [("content-length", str(len(self.body))), ("content-type", "application/json")] if self.body else []
        return [*pseudo, path, ("user-agent", "client/1.0"), ("accept", "*/*"), ("accept-encoding", "gzip"), *length]


_HITS: Final = b'{"root":{"id":"toplevel","children":[' + b'{"id":"id:m:m::1","relevance":0.25},' * 50 + b"]}}"
_QUERY: Final = "/search/?yql=select%20*%20from%20music%20where%20userQuery()&query=blue%20note%20{}&ranking=words"
_PUT: Final = b'{"fields":{"title":"Kind of Blue","year":1959,"text":"' + b"some words " * 20 + b'"}}'
_DONE: Final = b'{"pathId":"/document/v1/m/music/docid/17","id":"id:m:music::17"}'
WORKS: Final = (
    Work("a query at a time", 1, _HITS, "GET", _QUERY),
    Work("32 queries at a time", 32, _HITS, "GET", _QUERY),
    Work("a put at a time", 1, _DONE, "POST", "/document/v1/m/music/docid/{}", _PUT),
    Work("128 puts at a time", 128, _DONE, "POST", "/document/v1/m/music/docid/{}", _PUT),
)

_ALIKE: Final = "core, alike requests at once"

Serve = Callable[[Sequence[bytes], bytes], int]
"""Serves what a client sends; gives the number of its requests."""


def run(report: Report, options: Options) -> None:
    module = _nghttp2_server()
    servers: dict[str, Serve] = {"core": lambda reads, body: _serve(reads, body, "")}
    servers[_ALIKE] = lambda reads, body: _serve(reads, body, "/document/v1/")
    if module is None:
        report.remarks.append("nghttp2 is left out: its header and library, or a compiler, are not installed")
    else:
        servers[f"nghttp2 {module.version()}"] = lambda reads, body: _serve_by_nghttp2(module, reads, body)
    if importlib.util.find_spec("ngh2") is None:
        report.remarks.append("ngh2 is left out: it is not installed")
    else:
        servers["ngh2"] = _serve_by_ngh2
    for work in WORKS:
        asked = {name: serve for name, serve in servers.items() if work.body or name != _ALIKE}
        ours, *peers = (f"{name} {us:.2f}" for name, us in _measured(work, asked, module, options).items())
        report.add(Row(f"HTTP/2: {work.name}", f"{ours} µs", ", ".join(peers)))


def _measured(work: Work, servers: Mapping[str, Serve], module: Any, options: Options) -> dict[str, float]:
    """Microseconds of a request, by server."""
    reads = _recorded(work, options.requests_count)
    if module is not None:
        _check_requests(module, reads, work.answer)
    least = dict.fromkeys(servers, math.inf)
    for _ in range(options.rounds):
        for name, serve in servers.items():
            begun = time.process_time_ns()
            count = serve(reads, work.answer)
            least[name] = min(least[name], (time.process_time_ns() - begun) / options.requests_count / 1e3)
            assert count == options.requests_count, name
    return least


def _recorded(work: Work, count: int) -> list[bytes]:
    """What a client writes, one piece after the other, each when all before is answered."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
    client.local_settings.initial_window_size = CLIENT_WINDOW
    client.initiate_connection()
    client.increment_flow_control_window(CLIENT_WINDOW)
    server, block = _connection(""), http2_header_block(200, HEADERS)
    reads = [client.data_to_send()]
    server.receive(reads[0])
    client.receive_data(server.take_output())
    for start in range(0, count, work.together):
        for number in range(start, start + work.together):
            stream = client.get_next_available_stream_id()
            client.send_headers(stream, work.fields(number), end_stream=not work.body)
            if work.body:
                client.send_data(stream, work.body, end_stream=True)
        reads.append(client.data_to_send())
        for event in server.receive(reads[-1]):
            assert event[0] == "request"
            server.respond(event[1], block, work.answer, True)
        for received in client.receive_data(server.take_output()):
            if isinstance(received, h2.events.DataReceived):
                client.acknowledge_received_data(received.flow_controlled_length, received.stream_id)
    return reads


def _connection(batch_start: str) -> Http2Connection:
    windows = (limits.HTTP_STREAM_WINDOW_BYTES, limits.HTTP_CONNECTION_WINDOW_BYTES)
    return Http2Connection(limits.HTTP_STREAMS, limits.HTTP_HEADERS_BYTES, *windows, batch_start=batch_start)


def _serve(reads: Sequence[bytes], body: bytes, batch_start: str) -> int:
    connection, block, count = _connection(batch_start), http2_header_block(200, HEADERS), 0
    for data in reads:
        for event in connection.receive(data):
            if event[0] == "batch":
                streams = event[1]
                http2_respond_all([connection] * len(streams), streams, block, [body] * len(streams))
                count += len(streams)
            elif event[0] == "request":
                connection.respond(event[1], block, body, True)
                count += 1
        connection.take_output()
    return count


def _by_nghttp2(module: Any, body: bytes) -> tuple[Any, Any]:
    """A connection, and the headers of its answers."""
    windows = (limits.HTTP_STREAM_WINDOW_BYTES, limits.HTTP_CONNECTION_WINDOW_BYTES)
    return module.Nghttp2Server(limits.HTTP_STREAMS, *windows), module.Fields(_fields(body))


def _fields(body: bytes) -> list[tuple[bytes, bytes]]:
    return [(b":status", b"200"), *HEADERS, (b"content-length", b"%d" % len(body))]


def _serve_by_nghttp2(module: Any, reads: Sequence[bytes], body: bytes) -> int:
    (connection, fields), count = _by_nghttp2(module, body), 0
    for data in reads:
        for event in connection.receive(data):
            connection.respond(event[1], fields, body)
            count += 1
        connection.take_output()
    return count


def _serve_by_ngh2(reads: Sequence[bytes], body: bytes) -> int:
    ngh2 = importlib.import_module("ngh2")
    connection = ngh2.Connection(ngh2.Role.SERVER)
    connection.initiate_connection()
    fields, count = _fields(body), 0
    bodies: dict[int, list[bytes]] = {}
    for data in reads:
        connection.receive_data(data)
        for event in connection.events():
            if isinstance(event, ngh2.DataReceived):
                bodies[event.stream_id].append(event.data)
            elif isinstance(event, ngh2.RequestReceived):
                bodies[event.stream_id] = []
            if getattr(event, "end_stream", False):
                b"".join(bodies.pop(event.stream_id))
                connection.send_response(event.stream_id, fields)
                connection.send_data(event.stream_id, body, end_stream=True)
                count += 1
        connection.data_to_send()
    return count


def _check_requests(module: Any, reads: Sequence[bytes], body: bytes) -> None:
    """Errors: AssertionError where nghttp2 does not make the same requests of the same bytes."""
    ours, block = _connection(""), http2_header_block(200, HEADERS)
    theirs, fields = _by_nghttp2(module, body)
    for data in reads:
        requests = ours.receive(data)
        assert theirs.receive(data) == requests
        for request in requests:
            assert request[0] == "request"
            ours.respond(request[1], block, body, True)
            theirs.respond(request[1], fields, body)
        ours.take_output()
        theirs.take_output()


def _nghttp2_server() -> Any:
    """The compiled module, from bench/.cache; None where it cannot be had."""
    compiler = shutil.which("c++")
    made = SOURCE.parent / ".cache" / f"nghttp2_server{sysconfig.get_config_var('EXT_SUFFIX')}"
    if compiler is None:
        return None
    if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
        made.parent.mkdir(exist_ok=True)
        folder = Path(nanobind.include_dir())
        includes = (folder, folder.parent / "ext" / "robin_map" / "include", sysconfig.get_path("include"))
        flags = ["-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-strict-aliasing"]
        sources = [str(SOURCE), str(folder.parent / "src" / "nb_combined.cpp")]
        command = [compiler, *flags, *(f"-I{each}" for each in includes), *sources, "-lnghttp2", "-o", str(made)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return None
    specification = importlib.util.spec_from_file_location("nghttp2_server", made)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["nghttp2_server"] = module
    specification.loader.exec_module(module)
    return module
