"""The Deploy API: tenants, sessions, applications, their files, convergence and reindexing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from paperwasp import limits
from paperwasp.configserver.application_api import WAIT_SECONDS
from paperwasp.configserver.deployments import ACTIVATE_SECONDS, PREPARE_SECONDS
from paperwasp.configserver.parameters import (
    APPLICATION,
    ARCHIVE_TYPES,
    MULTIPART,
    SESSION,
    SHORT_APPLICATION,
    TENANT,
    TENANTS,
)
from paperwasp.configserver.reindexing_api import FASTEST
from paperwasp.configserver.repository import DEFAULT
from tools.openapi.parts import (
    BOOLEAN,
    DEPLOY_DURATION,
    NUMBER,
    STRING,
    TEXT,
    Json,
    answer,
    enum,
    errors,
    in_path,
    json_answer,
    operation,
    query,
    ref,
    with_default,
)

_TAG: Final = "deploy"
NAME: Final[Json] = {"type": "string", "pattern": f"^[A-Za-z0-9_-]{{1,{limits.APPLICATION_NAME_LENGTH}}}$"}
_FLAG: Final = with_default(BOOLEAN, False)
_MILLISECONDS: Final[Json] = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
_BINARY: Final[Json] = {}
_ARCHIVE: Final[Json] = {
    "description": "The application package, as a zip or as a gzipped tar.",
    "required": True,
    "content": {media: {"schema": _BINARY} for media in ARCHIVE_TYPES},
}
_VERSIONS: Final = (
    query("vespaVersion", STRING, "A version of Vespa: of the major number that is spoken."),
    query("serviceVersion", STRING, "The same by another name."),
)
_PARTS: Final = {
    "tenant": in_path("tenant", with_default(NAME, DEFAULT), "The tenant; `default` always exists."),
    "application": in_path("application", with_default(NAME, DEFAULT), "The application."),
    "environment": in_path("environment", with_default(STRING, "prod"), "Without effect: there is one zone."),
    "region": in_path("region", with_default(STRING, "default"), "Without effect: there is one zone."),
    "instance": in_path("instance", with_default(NAME, DEFAULT), "The instance of the application."),
    "session": in_path("session", {"type": "string", "pattern": "^[0-9]{1,18}$"}, "The number of the session."),
    "path": in_path("path", STRING, "The path of a file or folder in the package; slashes in it are not escaped."),
    "service": in_path("service", STRING, "Host and port of a service, with a colon between."),
    "host": in_path("host", STRING, "The name of a host."),
}
_OPTIONS: Final = (
    query("applicationName", with_default(NAME, DEFAULT), "The application that the package is for."),
    query("instance", with_default(NAME, DEFAULT), "The instance of the application."),
    query("ignoreValidationErrors", _FLAG, "Allows changes that lose or hide documents."),
    query("dryRun", _FLAG, "Prepares, and changes nothing else."),
    query("dryrun", _FLAG, "As dryRun."),
    *_VERSIONS,
)
_FORCE: Final = (
    query("ignoreSessionStaleFailure", _FLAG, "Activates a session that was made before another one was activated."),
    query("force", _FLAG, "As ignoreSessionStaleFailure."),
)
_LISTING: Final = (
    query("recursive", _FLAG, "Folders with all that is below them."),
    query("return", with_default(enum("content", "status"), "content"), "The content, or its state."),
)
_TARGETS: Final = (
    query("clusterId", STRING, "Content clusters, with commas between; without it all."),
    query("documentType", STRING, "Document types, with commas between; without it all."),
    query("indexedOnly", _FLAG, "Only types that have a field with an index."),
)
_SPEED: Final[Json] = {**NUMBER, "minimum": 0, "maximum": FASTEST}
_DEBUG: Final = query("debug", _FLAG, "Adds to the message of an error where it came from.")


def _timeout(seconds: float) -> Json:
    return query("timeout", with_default(DEPLOY_DURATION, f"{seconds:g}s"), "How long the step may take.")


def _named(pattern: str) -> list[Json]:
    names = [part[1:-1].removesuffix("...") for part in pattern.split("/") if part.startswith("{")]
    return [_PARTS[name] for name in names]


def _operation(
    name: str, summary: str, schema: str, *more: int, parameters: Iterable[Json] = (), body: Json | None = None
) -> Json:
    responses = {"200": json_answer(summary, ref(schema)), **errors(ref("Error"), 404, 507, *more)}
    return operation(name, summary, _TAG, responses, parameters=(*parameters, _DEBUG), body=body)


def _form() -> Json:
    parts: dict[str, Any] = {
        "applicationPackage": _BINARY,
        "prepareParams": {"type": "object", "description": "Parameters, which go before those of the query string."},
    }
    schema = {"type": "object", "required": ["applicationPackage"], "properties": parts}
    return {**_ARCHIVE, "content": {**_ARCHIVE["content"], MULTIPART: {"schema": schema}}}


def _sessions() -> dict[str, dict[str, Json]]:
    steps = (408, 409, 412)
    source = query("from", STRING, "The address of an application whose package the session has, in place of a body.")
    prepare = (_timeout(PREPARE_SECONDS), *_OPTIONS, *_FORCE)
    optional = {**_ARCHIVE, "required": False}
    return {
        f"{TENANT}/session": {
            "post": _operation(
                "createSession",
                "Makes a session of an application package.",
                "Session",
                *steps,
                parameters=(_timeout(PREPARE_SECONDS), source),
                body=optional,
            ),
        },
        f"{SESSION}/prepared": {
            "put": _operation("prepare", "Checks the package of a session.", "Prepared", *steps, parameters=prepare),
            "get": _operation("prepared", "A session that is prepared.", "Prepared"),
        },
        f"{SESSION}/active": {
            "put": _operation(
                "activate",
                "Makes a prepared session the active one of its application.",
                "Activated",
                *steps,
                parameters=(_timeout(ACTIVATE_SECONDS), *_FORCE),
            ),
        },
        f"{TENANT}/prepareandactivate": {
            "post": _operation(
                "deploy",
                "Makes a session of a package, prepares and activates it.",
                "Deployed",
                *steps,
                parameters=prepare,
                body=_form(),
            ),
        },
        **_content(SESSION, "Session"),
    }


def _content(root: str, of: str) -> dict[str, dict[str, Json]]:
    """The files of a package. Those of a session can be changed."""
    found: dict[str, dict[str, Json]] = {}
    for path, name in (("/content", "Root"), ("/content/", "Entries"), ("/content/{path}", "File")):
        get = _operation(f"read{of}{name}", "A file, or what is in a folder.", "Content", parameters=_LISTING)
        status = {"oneOf": [ref("Content"), ref("ContentStatus"), {}]}
        if name == "File":
            get["responses"]["200"] = answer("A file as it is, or what is in a folder.", {"*/*": status})
        found[root + path] = {"get": get}
    if of == "Session":
        file: Json = {"description": "The file.", "required": False, "content": {"*/*": {"schema": _BINARY}}}
        found[f"{root}/content/{{path}}"] |= {
            "put": _operation(
                "writeFile",
                "Writes a file; makes a folder where the path ends in a slash.",
                "Edited",
                408,
                409,
                parameters=(_timeout(PREPARE_SECONDS),),
                body=file,
            ),
            "delete": _operation(
                "removeFile",
                "Removes a file or an empty folder.",
                "Edited",
                408,
                409,
                parameters=(_timeout(PREPARE_SECONDS),),
            ),
        }
    return found


def _tenants() -> dict[str, dict[str, Json]]:
    return {
        TENANTS: {"get": _operation("tenants", "The tenants.", "Tenants")},
        TENANT: {
            "get": _operation("tenant", "Whether there is a tenant.", "Message"),
            "put": _operation("createTenant", "Makes a tenant.", "Message", 408),
            "delete": _operation("removeTenant", "Removes a tenant that has no applications.", "Message", 408),
        },
        "/application/v2/host/{host}": {
            "get": _operation("applicationOfHost", "The application that runs on a host.", "ApplicationOfHost")
        },
        f"{TENANT}/application": {
            "get": _operation("applications", "The addresses of the applications of a tenant.", "Addresses")
        },
    }


def _applications() -> dict[str, dict[str, Json]]:
    restart = (
        query("hostname", STRING, "Only services on this host."),
        query("clusterId", STRING, "Only services of this cluster."),
        query("clusterType", STRING, "Only services of this type, as `content` or `container`."),
        _timeout(ACTIVATE_SECONDS),
    )
    times = (
        query("from", with_default(_MILLISECONDS, 0), "Lines since, in milliseconds since 1970."),
        query("to", _MILLISECONDS, "Lines before, in milliseconds since 1970; without it until now."),
    )
    logs = _operation("logs", "The log.", "Message", parameters=times)
    logs["responses"]["200"] = answer("Lines of text.", {TEXT: STRING})
    found: dict[str, dict[str, Json]] = {
        f"{APPLICATION}/restart": {
            "post": _operation(
                "restart", "Restarts the services that all parameters name.", "Message", 408, 409, parameters=restart
            )
        },
        f"{APPLICATION}/logs": {"get": logs},
        f"{APPLICATION}/filedistributionstatus": {
            "get": _operation("fileDistribution", "Whether the package's files are there.", "FileDistribution")
        },
        f"{APPLICATION}/quota": {"get": _operation("quota", "There are no quotas.", "Quota")},
    }
    for path, of in ((APPLICATION, ""), (SHORT_APPLICATION, "OfDefault")):
        delete = _operation(
            f"removeApplication{of}",
            "Deletes an application and its documents.",
            "Message",
            408,
            409,
            parameters=(_timeout(ACTIVATE_SECONDS),),
        )
        get = _operation(f"application{of}", "The generation that runs.", "Application")
        found[path] = {"get": get, "delete": delete}
    return found


def _changes() -> dict[str, dict[str, Json]]:
    wait = (query("timeout", with_default(DEPLOY_DURATION, f"{WAIT_SECONDS:g}s"), "How long to wait."), *_VERSIONS)
    speed = query("speed", with_default(_SPEED, 1.0), "How fast it goes: at s it takes s / (1 + s) of the time.")
    needed = query("speed", _SPEED, "How fast it goes.", required=True)
    cause = query("cause", STRING, "The reason, for who looks at the status.")
    gone = json_answer("There is no such service.", ref("ServiceConvergence"))
    one = _operation(
        "serviceConvergence", "Whether a service has the wanted generation.", "ServiceConvergence", parameters=wait
    )
    one["responses"]["410"] = gone
    return {
        f"{APPLICATION}/serviceconverge": {
            "get": _operation(
                "convergence",
                "Whether all services have the wanted generation; waits for that.",
                "Convergence",
                parameters=wait,
            )
        },
        f"{APPLICATION}/serviceconverge/{{service}}": {"get": one},
        f"{APPLICATION}/reindex": {
            "post": _operation("reindex", "Indexes documents again.", "Message", parameters=(*_TARGETS, speed, cause)),
            "put": _operation(
                "reindexingSpeed", "Changes the speed of reindexing.", "Message", parameters=(*_TARGETS, needed)
            ),
        },
        f"{APPLICATION}/reindexing": {
            "get": _operation("reindexing", "How far reindexing is.", "Reindexing"),
            "post": _operation("enableReindexing", "Lets reindexing go on.", "Message"),
            "delete": _operation("disableReindexing", "Halts reindexing.", "Message"),
        },
        **_content(APPLICATION, "Application"),
    }


def paths() -> dict[str, dict[str, Json]]:
    """All paths, with the parts that they name."""
    found = {**_tenants(), **_sessions(), **_applications(), **_changes()}
    shown: dict[str, dict[str, Any]] = {}
    for path, operations in found.items():
        named = _named(path)
        shown[path] = {"parameters": named, **operations} if named else operations
    return shown
