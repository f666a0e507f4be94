"""What the tests of the config server share: packages, a clock that stands still, and a server without sockets."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from paperwasp.application.model import ApplicationModel, build_model
from paperwasp.application.package import ApplicationPackage
from paperwasp.cluster.config_store import ConfigStore, FileConfigStore
from paperwasp.configserver import Activation, ConfigServer, ConfigServerApp
from paperwasp.env import Environment
from paperwasp.http.messages import Request, Response

CLOCK = Environment(time_ns=lambda: 1_763_633_000_123_000_000)

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


def schema(extra: str = "", title: str = "field title type string { indexing: index | summary }") -> str:
    return f"schema music {{ document music {{ {title} {extra} }} }}"


def package(**changes: str | None) -> ApplicationPackage:
    """The music application with some files replaced, added, or (None) left out; `__` in a name is a slash."""
    files: dict[str, str | None] = {"services.xml": SERVICES, "schemas/music.sd": schema()}
    for name, text in changes.items():
        files[_PATHS.get(name, name)] = text
    return ApplicationPackage({path: text.encode() for path, text in files.items() if text is not None})


_PATHS = {"services": "services.xml", "music": "schemas/music.sd", "readme": "doc/a b/read me.txt"}


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
    "noted": package(services=SERVICES.replace("<nodes>", "<nodes count='2'>")).to_zip(),
    "garbage": b"PK\x03\x04 this is no zip archive",
}


class Service:
    """The service that is configured: remembers what it was told, and fails when asked to."""

    def __init__(self) -> None:
        self.activations: list[Activation] = []
        self.error: Exception | None = None

    def activate(self, activation: Activation) -> None:
        if self.error is not None:
            raise self.error
        self.activations.append(activation)


def build(found: ApplicationPackage) -> ApplicationModel:
    return build_model(found, lambda _: None)


def config_server(store: ConfigStore | Path, service: Service | None = None) -> ConfigServer:
    store = FileConfigStore(store) if isinstance(store, Path) else store
    return ConfigServer(store, build, (service or Service()).activate, CLOCK)


def ask(app: ConfigServerApp, request: Request) -> Response:
    return asyncio.run(app.handle(request))
