"""What many requests, connections or fields do together: clients that do not read, sessions, large deployments."""

from __future__ import annotations

import io
import json
import socket
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from bench.attack import Attack, Siege, send
from bench.service import Running

READERS: Final = 300
PIPELINED: Final = 20
READERS_SECONDS: Final = 15.0
FIELDS: Final = 20_000
TREES: Final = 3000
TREE_DEPTH: Final = 7
SESSIONS: Final = 60
FILES: Final = 9000
_TENANT: Final = "/application/v2/tenant/default"
_OWN: Final = Path(__file__).parent / "hostile_application"
_MANY: Final = f"{_TENANT}/application/many"
_LISTING: Final = (
    f"{_TENANT}/application/default/environment/prod/region/default/instance/default/content/"
    "?recursive=true&return=status"
)
_GET: Final = b"GET /search/?yql=select+*+from+item+where+true&hits=400&timeout=5s HTTP/1.1\r\nHost: x\r\n\r\n"


def sieges() -> Iterator[Siege]:
    """One of each kind."""
    yield Siege(f"{READERS} clients that read slowly", _slow_readers)
    yield Siege(f"{SESSIONS} sessions that are made at once", _sessions)
    fields = f"{FIELDS:,} attribute fields"
    yield Siege(f"the deployment of {fields}", lambda server: _deploy(server, _fields(), "many"), keeps=True)
    yield Siege(f"the removal of {fields}", lambda server: _send(server, "DELETE", _MANY))
    forest = "a forest of 63 MB"
    yield Siege(f"the deployment of {forest}", lambda server: _deploy(server, _forest(), "default"), keeps=True)
    yield Siege("the first query of its profile", _ask_forest, keeps=True)
    yield Siege(f"the removal of {forest}", lambda server: _deploy(server, _own_files(), "default"))
    files = f"{FILES:,} files"
    yield Siege(f"the deployment of {files}", lambda server: _deploy(server, _files(), "default"), keeps=True)
    yield Siege(f"a listing of {files} with their checksums", lambda server: _send(server, "GET", _LISTING), keeps=True)
    yield Siege(f"the removal of {files}", lambda server: _deploy(server, _own_files(), "default"))
    yield Siege("the deployment of a model that loops 2^40 times", lambda server: _deploy(server, _loop(), "loop"))


def _slow_readers(server: Running) -> int:
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(READERS)]
    try:
        for client in clients:
            client.setblocking(False)
            client.send(_GET * PIPELINED)
        end = time.perf_counter() + READERS_SECONDS
        while time.perf_counter() < end:
            for client in clients:
                try:
                    client.recv(100)
                except OSError:  # there is nothing, or it was closed
                    continue
            time.sleep(0.1)
    finally:
        for client in clients:
            client.close()
    return 200


def _sessions(server: Running) -> int:
    """The worst of the answers but 429."""
    own = _zip(_own_files())
    with ThreadPoolExecutor(SESSIONS) as pool:
        found = list(pool.map(lambda _: _send(server, "POST", f"{_TENANT}/session", own), range(SESSIONS)))
    return max(status for status in found if status != 429)


def _ask_forest(server: Running) -> int:
    path = "/search/?yql=select+*+from+item+where+true&ranking=forest&timeout=10s"
    return Attack("", "GET", path)(server)


def _deploy(server: Running, files: dict[str, bytes], application: str) -> int:
    path = f"{_TENANT}/prepareandactivate?applicationName={application}&timeout=300"
    return _send(server, "POST", path, _zip(files))


def _send(server: Running, method: str, path: str, body: bytes = b"") -> int:
    assert server.config_port is not None
    return send(server.config_port, Attack("", method, path, body, {"Content-Type": "application/zip"} if body else {}))


def _own_files() -> dict[str, bytes]:
    return {str(path.relative_to(_OWN)): path.read_bytes() for path in _OWN.rglob("*") if path.is_file()}


def _zip(files: dict[str, bytes]) -> bytes:
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return found.getvalue()


def _other(document: str, profile: str = "") -> dict[str, bytes]:
    """A package of another application, with a port of its own."""
    services = (
        '<services version="1.0"><container id="other" version="1.0"><search/>'
        '<http><server id="other" port="18099"/></http></container>'
        '<content id="others" version="1.0"><redundancy>1</redundancy><documents>'
        '<document type="other" mode="index"/></documents>'
        '<nodes><node hostalias="node1" distribution-key="0"/></nodes></content></services>'
    )
    schema = f"schema other {{ document other {{ {document} }} {profile} }}"
    return {"services.xml": services.encode(), "schemas/other.sd": schema.encode()}


def _files() -> dict[str, bytes]:
    """The own application with many small files."""
    return _own_files() | {f"files/{number % 100}/{number}.txt": b"%d" % number for number in range(FILES)}


def _fields() -> dict[str, bytes]:
    return _other("\n".join(f"field f{n} type int {{ indexing: attribute }}" for n in range(FIELDS)))


def _forest() -> dict[str, bytes]:
    """The own application with one more rank profile."""

    def tree(node: int, depth: int) -> dict[str, object]:
        if depth == TREE_DEPTH:
            return {"nodeid": node, "leaf": 0.001 * node}
        yes, no = 2 * node + 1, 2 * node + 2
        below = [tree(yes, depth + 1), tree(no, depth + 1)]
        return {"nodeid": node, "split": "attribute(number)", "split_condition": node, "yes": yes, "no": no,
                "missing": yes, "depth": depth, "children": below}  # fmt: skip

    one = json.dumps(tree(0, 0))
    files = _own_files()
    schema = files["schemas/item.sd"].decode().rstrip().removesuffix("}")
    profile = 'rank-profile forest { first-phase { expression: xgboost("forest.json") } }\n}'
    files["schemas/item.sd"] = f"{schema}{profile}\n".encode()
    files["models/forest.json"] = f"[{','.join([one] * TREES)}]".encode()
    return files


def _loop() -> dict[str, bytes]:
    from onnx import TensorProto, helper

    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("d", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]),
        ],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "yes", "x"], ["y"], body=body)],
        "loop",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [
            helper.make_tensor("n", TensorProto.INT64, [], [1 << 40]),
            helper.make_tensor("yes", TensorProto.BOOL, [], [True]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    profile = (
        "rank-profile loop { onnx-model m { file: models/m.onnx\n input x: x\n } "
        "function x() { expression: tensor<float>(d0[1])(1) } "
        "first-phase { expression: sum(onnx(m).y) } }"
    )
    return {**_other("", profile), "models/m.onnx": model.SerializeToString()}
