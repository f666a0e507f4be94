"""Runs a service in this process and prints, as JSON, which modules are loaded at each stage of its life.

`python -m tests.service.loaded_modules DIRECTORY`: a program of its own, since other tests have everything loaded. It
asks by the standard library alone, because other clients load libraries of the service.
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import paperwasp.cli
from paperwasp.server.process import ServerProcess, Settings
from tests.service.music import package

DOCUMENT = {"fields": {"title": "Kind of Blue", "year": 1959, "tags": ["jazz"]}}
QUERIES = (
    "select * from music where title contains 'blue'",
    "select * from music where userQuery()",
    "select title from music where year > 1950 order by year",
    "select * from music where tags contains 'jazz' limit 0",
)
paperwasp.cli.command("serve")  # the command line is part of the process that serves


def stages(service: ServerProcess) -> dict[str, list[str]]:
    """The names of all modules that are loaded when the service listens, is deployed to, and has been used."""
    url = f"http://127.0.0.1:{service.containers.front_port}"
    config_url = f"http://127.0.0.1:{service.config_server.port}"
    assert _ask(f"{url}/state/v1/health")["status"]["code"] == "initializing"
    loaded = {"started": sorted(sys.modules)}
    deployed = _ask(
        f"{config_url}/application/v2/tenant/default/prepareandactivate", package(), "POST", "application/zip"
    )
    assert deployed["activated"], deployed
    loaded["deployed"] = sorted(sys.modules)
    document = json.dumps(DOCUMENT).encode()
    _ask(f"{url}/document/v1/music/music/docid/1", document, "POST")
    _ask(f"{url}/document/v1/music/music/docid/1", b'{"fields": {"year": {"increment": 1}}}', "PUT")
    assert _ask(f"{url}/document/v1/music/music/docid/1")["fields"]["year"] == 1960
    for yql in QUERIES:
        answer = _ask(f"{url}/search/?{urllib.parse.urlencode({'yql': yql, 'query': 'blue'})}")
        assert answer["root"]["fields"]["totalCount"] == 1, answer
    loaded["used"] = sorted(sys.modules)
    return loaded


def _ask(url: str, body: bytes | None = None, method: str = "GET", content_type: str = "application/json") -> Any:
    request = urllib.request.Request(url, body, {"Content-Type": content_type}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


async def main(directory: Path) -> None:
    service = ServerProcess(Settings(directory, port=0, config_port=0))
    try:
        service.start()
        json.dump(await asyncio.to_thread(stages, service), sys.stdout)
    finally:
        await service.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
