"""Serves the OpenAPI description of a port, a file of the package, at `/openapi.json`.

It is read for each request, and not kept: few ask for it. `docs/internals/openapi.md` says what is in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from paperwasp.http.messages import Request, Response
from paperwasp.http.routing import Router

PATH: Final = "/openapi.json"
FOLDER: Final = Path(__file__).parent.parent / "openapi"
"""The descriptions: a file for each kind of port."""


class DescriptionApi:
    """The handler of `/openapi.json`. The file is read on a thread."""

    def __init__(self, port: str) -> None:
        """`port`: the name of the file without its ending."""
        self._file = FOLDER / f"{port}.json"

    def bind(self, router: Router) -> None:
        router.add("GET", PATH, self.description)

    async def description(self, request: Request, names: Mapping[str, str]) -> Response:
        return Response(200, await asyncio.to_thread(self._file.read_bytes))
