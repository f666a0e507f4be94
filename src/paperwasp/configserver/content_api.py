"""The files of a session or of an application over HTTP; until it is activated, those of a session can be changed.

A folder is listed in one of two forms: entries with name, type and size where the path ends in a slash, and addresses
of its files, as Vespa itself does it, where it does not, where the query asks for it (`return=content`), and for
the Vespa command line. The addresses of folders carry the question on, so that a client that follows them stays in
its form.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html#content
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from paperwasp.application.package import ApplicationPackage
from paperwasp.base.file_contents import size_of
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.deployments import PREPARE_SECONDS, Deployments
from paperwasp.configserver.editing import Directories, Edit, delete, is_directory, put_directory, put_file
from paperwasp.configserver.parameters import (
    APPLICATION,
    SESSION,
    application_in_path,
    application_url,
    flag,
    seconds,
    session_in_path,
    session_url,
)
from paperwasp.configserver.preparation import Packages
from paperwasp.configserver.repository import Session, SessionRepository
from paperwasp.configserver.workers import Workers
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import Request, Response, decode, json_response
from paperwasp.http.routing import Router

_TYPES: Final = {
    ".xml": "application/xml",
    ".json": "application/json",
    ".txt": "text/plain;charset=utf-8",
    ".html": "text/html;charset=utf-8",
}
_OTHER_TYPE: Final = "application/octet-stream"


class ContentApi:
    """Handlers of `…/content`."""

    def __init__(
        self, sessions: SessionRepository, packages: Packages, deployments: Deployments, workers: Workers
    ) -> None:
        self._sessions = sessions
        self._packages = packages
        self._deployments = deployments
        self._workers = workers

    def bind(self, router: Router) -> None:
        for path in ("/content", "/content/{path...}"):
            router.add("GET", APPLICATION + path, self.of_application)
            router.add("GET", SESSION + path, self.of_session)
        router.add("PUT", SESSION + "/content/{path...}", self.put)
        router.add("DELETE", SESSION + "/content/{path...}", self.delete)

    async def of_application(self, request: Request, names: Mapping[str, str]) -> Response:
        application = application_in_path(names)
        session = await self._workers.read(self._sessions.active_session, application)
        return await self._content(request, session, application_url(request, application), _path(names))

    async def of_session(self, request: Request, names: Mapping[str, str]) -> Response:
        tenant, session_id = names["tenant"], session_in_path(names)
        await self._workers.read(self._sessions.check_tenant, tenant)
        session = await self._workers.read(self._sessions.get, tenant, session_id)
        return await self._content(request, session, session_url(request, tenant, session.id), _path(names))

    async def _content(self, request: Request, session: Session, url: str, path: str) -> Response:
        package = await self._workers.read(self._packages.of, session)
        if path in package.files:
            return await self._workers.read(_file, request, package, path, url)
        folder = path.removesuffix("/")
        if not is_directory(package, session.directories, folder):
            raise NotFound(f"Session {session.id} does not contain a file at '{path}'")
        listing = _Listing(request, package, session.directories, folder, f"{url}/content/")
        return await self._workers.read(listing.response)

    async def put(self, request: Request, names: Mapping[str, str]) -> Response:
        """Writes a file; makes a folder where the path ends in a slash."""
        path = _path(names)
        if path.endswith("/"):
            return await self._edit(request, names, put_directory(path))
        if not request.body:
            raise InvalidInput("Request must contain body when creating a file")
        return await self._edit(request, names, put_file(path, request.body))

    async def delete(self, request: Request, names: Mapping[str, str]) -> Response:
        """Removes a file, or an empty folder."""
        return await self._edit(request, names, delete(_path(names)))

    async def _edit(self, request: Request, names: Mapping[str, str], edit: Edit) -> Response:
        tenant, session_id = names["tenant"], session_in_path(names)
        await self._workers.read(self._sessions.check_tenant, tenant)
        deadline = Deadline(seconds(request.parameters(), PREPARE_SECONDS))
        await self._workers.deploy(tenant, deadline, lambda: self._deployments.edit(tenant, session_id, edit, deadline))
        return json_response(200, {"prepared": f"{session_url(request, tenant, session_id)}/prepared"})


def _path(names: Mapping[str, str]) -> str:
    """The path of a file below `content`, decoded."""
    return "/".join(decode(segment) for segment in names.get("path", "").split("/"))


def _file(request: Request, package: ApplicationPackage, path: str, url: str) -> Response:
    wanted = request.parameters().get("return", "content")
    if wanted == "status":
        return json_response(200, _status(package, path, f"{url}/content/"))
    if wanted != "content":
        raise _bad_return(wanted)
    return Response(200, package.files[path], _TYPES.get(PurePosixPath(path).suffix, _OTHER_TYPE))


class _Listing:
    """One folder of a package, as an answer."""

    def __init__(
        self, request: Request, package: ApplicationPackage, directories: Directories, folder: str, url: str
    ) -> None:
        self._request = request
        self._package = package
        self._names = [*package.files, *(f"{directory}/" for directory in directories)]
        self._url = url
        self._prefix = folder + "/" if folder else ""
        self._parameters = request.parameters()
        self._recursive = flag(self._parameters, "recursive")

    def response(self) -> Response:
        wanted = self._parameters.get("return", "")
        paths = self._paths()
        if wanted == "status":
            return json_response(200, [_status(self._package, path, self._url) for path in paths])
        if wanted not in ("", "content"):
            raise _bad_return(wanted)
        shows_addresses = not self._request.raw_path.endswith("/")
        if wanted or shows_addresses or self._request.header("user-agent").startswith("Vespa CLI/"):
            addresses = (self._url + quote(path) for path in paths)
            return json_response(200, [each + ("?return=content" if each.endswith("/") else "") for each in addresses])
        return json_response(200, [self._entry(path) for path in paths])

    def _paths(self) -> list[str]:
        """The files and folders (these end in a slash) in the folder, or below it too."""
        paths: set[str] = set()
        for name in self._names:
            if name.startswith(self._prefix) and name != self._prefix:
                head, slash, _ = name.removeprefix(self._prefix).partition("/")
                paths.add(self._prefix + head + slash)
                if self._recursive:
                    paths.add(name)
                    paths |= _folders(name, self._prefix)
        return sorted(paths)

    def _entry(self, path: str) -> dict[str, Any]:
        name = path.removeprefix(self._prefix)
        if path.endswith("/"):
            return {"name": name.removesuffix("/"), "type": "directory"}
        return {"name": name, "type": "file", "size": size_of(self._package.files, path)}


def _folders(path: str, prefix: str) -> set[str]:
    """The folders from below `prefix` down to the file."""
    folders = set[str]()
    end = path.find("/", len(prefix))
    while end >= 0:
        folders.add(path[: end + 1])
        end = path.find("/", end + 1)
    return folders


def _status(package: ApplicationPackage, path: str, url: str) -> dict[str, str]:
    content = package.files.get(path)
    checksum = hashlib.md5(content, usedforsecurity=False).hexdigest() if content is not None else ""
    return {"status": "new", "md5": checksum, "name": url + quote(path)}


def _bad_return(wanted: str) -> InvalidInput:
    return InvalidInput(f"return={wanted} is an illegal argument. Only 'content' and 'status' are allowed")
