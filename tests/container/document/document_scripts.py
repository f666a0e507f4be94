"""Golden scripts of the document API: requests to a container with real content clusters behind it.

Cases are parted by blank lines; lines that begin with `# ` are comments. A case is a request line
(`GET <path>?<query>`, below /document/v1/ where it does not begin with a slash) and the body; a line `---`; then the
answer: status and body, and the headers that say more than that it is JSON. Every body's `pathId` must be the path as
it was sent: it is checked and left out. What the clock says is shown as `#`.

All cases of a script are asked of one application, one after the other: that in the folder of the script's name, or
else the one in `document_application`. A line `repeat <text> <n>` below the request puts n times the text for `@`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from paperwasp.application.build import build_model
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import load_package
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.http.messages import Request, Response
from paperwasp.search.features.compile import check_profiles
from paperwasp.server.process import open_file_log
from paperwasp.server.roles.content_cluster import RunningCluster

SCRIPTS = Path(__file__).parent / "scripts"
ROOT = "/document/v1/"
_CLOCK = re.compile(r"\d+\.\d+ ms")
_REPEAT = re.compile(r"repeat (\S+) (\d+)\n")


@contextmanager
def running(folder: Path, directory: Path) -> Iterator[tuple[DocumentApi, EmbeddedMessenger]]:
    """The document API of the application in the folder, with its content clusters."""
    messenger, model, clusters = EmbeddedMessenger(), model_of(folder), []
    try:
        for cluster in model.content_clusters:
            clusters.append(RunningCluster(directory / cluster.id, "app", cluster.id, messenger, open_file_log))
            clusters[-1].configure(1, cluster)
        api = DocumentApi(messenger, "content/app/{}".format)
        api.configure(model, model.containers[0])
        yield api, messenger
    finally:
        for opened in clusters:
            opened.stop()


def model_of(folder: Path) -> ApplicationModel:
    return build_model(load_package(folder), check_profiles)


def cases(script: Path) -> Iterator[tuple[str, str]]:
    lines = [line for line in script.read_text().splitlines() if not line.startswith("# ") and line != "#"]
    for block in "\n".join(lines).split("\n\n"):
        if block.strip():
            request, _, expected = (block.strip() + "\n").partition("\n---\n")
            yield request, expected.strip()


def request_of(text: str) -> Request:
    line, _, body = text.partition("\n")
    if repeat := _REPEAT.match(body):
        body = body[repeat.end() :].replace("@", repeat[1] * int(repeat[2]))
    method, _, target = line.partition(" ")
    path, _, query = target.partition("?")
    return Request(method, path if path.startswith("/") else ROOT + path, query, {}, body.encode())


def shown(request: Request, response: Response) -> str:
    """The answer as the scripts have it."""
    told = [f"{name}: {value}" for name, value in response.headers.items()]
    assert response.content_type == "application/json; charset=UTF-8"
    if not response.body:
        return "\n".join([str(response.status), *told])
    body = orjson.loads(response.body)
    assert next(iter(body)) == "pathId" and body.pop("pathId") == request.raw_path
    return "\n".join([f"{response.status} {_CLOCK.sub('# ms', orjson.dumps(body).decode())}", *told])


def run(script: Path, directory: Path) -> None:
    """Compares the answers with what the script says."""
    own = script.with_suffix("")

    async def ask(api: DocumentApi) -> None:
        for text, expected in cases(script):
            request = request_of(text)
            response = await api.handle(request)
            assert isinstance(response, Response)
            assert shown(request, response) == expected, f"{script.name}:\n{text}"

    with running(own if own.is_dir() else SCRIPTS / "document_application", directory) as (api, _):
        asyncio.run(ask(api))
