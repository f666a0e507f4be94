"""What the tests of the config server share: packages, a clock that stands still, and a server without sockets."""

from __future__ import annotations

import asyncio
import io
import itertools
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paperwasp.application.build import build_model
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage
from paperwasp.base.env import Environment
from paperwasp.configserver import (
    Activation,
    ApplicationId,
    ConfigServer,
    ConfigServerApp,
    PrepareOptions,
    ReindexedChunk,
    ServiceAddress,
    ServiceLog,
)
from paperwasp.coordination.config_store import ConfigStore, FileConfigStore
from paperwasp.http.messages import Request, Response
from paperwasp.server.roles.applications import Applications, StagedGeneration
from paperwasp.server.roles.config_follower import ConfigFollower
from paperwasp.server.roles.containers import StagedContainers
from tests.exchanges import answered, whole

CLOCK = Environment(time_ns=lambda: 1_763_633_000_123_000_000, monotonic_ns=lambda: 0)

SERVICES = """\
<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="music" version="1.0">
    <min-redundancy>1</min-redundancy>
    <documents><document type="music" mode="index"/></documents>
    <nodes><node distribution-key="0" hostalias="node1"/></nodes>
  </content>
</services>
"""


TWO_CLUSTERS = SERVICES.replace(
    "</services>",
    """\
  <content id="books" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="book" mode="store-only"/><document type="music" mode="index"/></documents>
  </content>
</services>
""",
)
FEED_CONTAINER = """\
<container id="feed" version="1.0"><document-api/><http><server id="f" port="8081"/></http></container>
"""
EXACT = "field title type string { indexing: index | summary\n match: exact }"
OVERRIDES = """\
<validation-overrides>
  <allow until="2025-12-01">indexing-change</allow>
</validation-overrides>
"""


def schema(extra: str = "", title: str = "field title type string { indexing: index | summary }") -> str:
    return f"schema music {{ document music {{ {title} {extra} }} }}"


def package(**changes: str | None) -> ApplicationPackage:
    """The music application with some files replaced, added, or (None) left out; `__` in a name is a slash."""
    files: dict[str, str | None] = {"services.xml": SERVICES, "schemas/music.sd": schema()}
    for name, text in changes.items():
        files[_PATHS.get(name, name)] = text
    return ApplicationPackage({path: text.encode() for path, text in files.items() if text is not None})


_PATHS = {
    "services": "services.xml",
    "music": "schemas/music.sd",
    "book": "schemas/book.sd",
    "readme": "doc/a b/read me.txt",
    "overrides": "validation-overrides.xml",
}


def tar_gz(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


PACKAGES: dict[str, bytes] = {
    "music": package().to_zip(),
    "music.tar.gz": tar_gz(package().files),
    "readme": package(readme="hello\n").to_zip(),
    "artist-added": package(music=schema("field artist type string { indexing: summary }")).to_zip(),
    "type-changed": package(music=schema(title="field title type int { indexing: summary }")).to_zip(),
    "title-removed": package(music=schema(title="field other type int { indexing: summary }")).to_zip(),
    "no-services": package(services=None).to_zip(),
    "broken-xml": package(services="<services>\n  <container>\n</services>").to_zip(),
    "unknown-element": package(services=SERVICES.replace("<search/>", "<search/><serach/>")).to_zip(),
    "component": package(services=SERVICES.replace("<search/>", "<search/>\n    <component id='x'/>")).to_zip(),
    "broken-schema": package(
        music="schema music {\n  document music {\n    feild title type string {}\n  }\n}\n"
    ).to_zip(),
    "no-schema": package(music=None).to_zip(),
    "title-matched": package(music=schema(title=EXACT)).to_zip(),
    "allowed": package(music=schema(title=EXACT), overrides=OVERRIDES).to_zip(),
    "two-clusters": package(services=TWO_CLUSTERS, book="schema book { document book {} }").to_zip(),
    "attributes": package(
        music=schema(
            "field who type predicate { indexing: attribute\n index { arity: 2 } }",
            title="field title type string { indexing: attribute }",
        )
    ).to_zip(),
    "two-containers": package(services=SERVICES.replace("<content", FEED_CONTAINER + "<content")).to_zip(),
    "noted": package(services=SERVICES.replace("<nodes>", "<nodes count='2'>")).to_zip(),
    "garbage": b"PK\x03\x04 this is no zip archive",
}


@dataclass
class Chunk:
    """A content cluster's answer to a chunk of reindexing."""

    token: bytes | None
    progress: float


class Service(Applications):
    """What a process runs: remembers what it was told to serve, and fails when asked to.

    Its content clusters have `chunks` chunks to reindex in each type.
    """

    def __init__(self, chunks: int = 1) -> None:
        self.activations: list[Activation] = []
        self.restarts: list[tuple[str, str | None, str | None, str | None]] = []
        self.reindexed: list[tuple[str, str, str, bytes]] = []
        self.error: Exception | None = None
        self.chunk_error: Exception | None = None
        self.chunks = chunks

    def check(self, application: ApplicationId, model: ApplicationModel) -> None:
        pass

    def activate(self, activation: Activation) -> None:
        if self.error is not None:
            raise self.error
        self.activations.append(activation)

    def stage(self, activation: Activation) -> StagedGeneration:
        self.activate(activation)
        return StagedGeneration(activation, StagedContainers("", {}, {}, (), {}))

    def commit(self, change: StagedGeneration) -> None:
        pass

    def abandon(self, change: StagedGeneration) -> None:
        self.activations.remove(change.activation)

    def restart(
        self, application: ApplicationId, host: str | None, cluster: str | None, cluster_type: str | None
    ) -> None:
        self.restarts.append((str(application), host, cluster, cluster_type))

    def reindex_chunk(
        self, application: ApplicationId, cluster: str, document_type: str, token: bytes, documents: int
    ) -> ReindexedChunk:
        if self.chunk_error is not None:
            raise self.chunk_error
        self.reindexed.append((str(application), cluster, document_type, token))
        done = int(token or b"0") + 1
        return Chunk(None if done >= self.chunks else str(done).encode(), done / self.chunks)

    def services(self, application: ApplicationId) -> list[ServiceAddress]:
        """The containers of what was activated last, at ports from 8080 on."""
        activations = [a for a in self.activations if a.application == application]
        return [
            ServiceAddress(container.id, "container", "localhost", 8080 + index, running.generation)
            for running in activations[-1:]
            for index, container in enumerate(running.model.containers)
        ]


_NUMBERS = itertools.count()


def build(found: ApplicationPackage, application: ApplicationId) -> ApplicationModel:
    return build_model(found, lambda *_: ())


def config_server(
    store: ConfigStore | Path, service: Service | None = None, environment: Environment = CLOCK
) -> ConfigServer:
    store = FileConfigStore(store) if isinstance(store, Path) else store
    service = service or Service()
    server = ConfigServer(store, build, reindex_chunk=service.reindex_chunk, environment=environment)
    follow(server, service)
    return server


def follow(server: ConfigServer, service: Applications, environment: Environment = CLOCK) -> ConfigFollower:
    """Has the service serve what is active in the store of that config server, from now on."""
    name = f"process-{next(_NUMBERS)}"
    follower = ConfigFollower(name, server.sessions, server.models, server.convergence, service, environment)
    follower.start()
    return follower


def deploy(server: ConfigServer, name: str, application: ApplicationId = ApplicationId(), **options: bool) -> int:  # noqa: B008 — frozen
    """Deploys a package; returns its generation."""
    prepared, error = server.deployments.prepare_and_activate(PACKAGES[name], PrepareOptions(application, **options))
    assert error is None
    return prepared.session.id


def config_app(server: ConfigServer, service: Service, logs: ServiceLog | None = None) -> ConfigServerApp:
    return ConfigServerApp(server, restart=service.restart, logs=logs, environment=CLOCK)


async def answer(app: ConfigServerApp, request: Request) -> Response:
    response = whole(await app.handle(request))
    app.observe(answered(), request, response, 0)
    return response


def ask(app: ConfigServerApp, request: Request) -> Response:
    return asyncio.run(answer(app, request))
