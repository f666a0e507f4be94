"""The requests of the Deploy API: their parameters and bodies, and the addresses that its answers name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson
from msgspec import Struct

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.version import VESPA_VERSION
from paperwasp.configserver.repository import DEFAULT, ApplicationId, check_name
from paperwasp.errors import InvalidInput, PaperwaspError, TooLarge, UnknownVersion
from paperwasp.http.messages import Request, path_segments
from paperwasp.http.multipart import Part, parse_multipart

ZIP: Final = "application/zip"
ARCHIVE_TYPES: Final = (ZIP, "application/x-gzip", "application/gzip")
MULTIPART: Final = "multipart/form-data"
_SUPPORTED: Final = ", ".join(ARCHIVE_TYPES[:2])
_DURATION: Final = compile_later(r"\s*(\d{1,12}(?:\.\d{0,9})?)\s*(ms|s|m|min|h)?\s*", re.ASCII | re.IGNORECASE)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_VERSION: Final = compile_later(r"\d{1,4}(\.\d{1,6}){0,2}([.-][\w.-]{1,40})?", re.ASCII)


class Upload(Struct, frozen=True):
    """An uploaded archive, and the parameters that came with it or in the address."""

    archive: bytes
    parameters: Mapping[str, str]


def archive_in(request: Request) -> bytes:
    """The body of an upload. Errors: InvalidInput where it is missing or of another type; TooLarge."""
    _check_body(request)
    if request.content_type not in ARCHIVE_TYPES:
        raise InvalidInput(f"Content-Type '{request.content_type}' is not supported, supported are: {_SUPPORTED}")
    return _check_size(request.body)


def upload_in(request: Request) -> Upload:
    """An archive as the body, or as the part `applicationPackage` of a form whose part `prepareParams` has parameters.

    Errors: InvalidInput, TooLarge.
    """
    if request.content_type != MULTIPART:
        if request.body and request.content_type and request.content_type not in ARCHIVE_TYPES:
            supported = f"{_SUPPORTED}, {MULTIPART}"
            raise InvalidInput(f"Content-Type '{request.content_type}' is not supported, supported are: {supported}")
        return Upload(archive_in(request), request.parameters())
    _check_body(request)
    parts = parse_multipart(request.header("content-type"), request.body)
    if "applicationPackage" not in parts:
        raise InvalidInput("The form has no part 'applicationPackage'")
    archive = _check_size(parts["applicationPackage"].content)
    if not archive:
        raise InvalidInput("The part 'applicationPackage' contains no data")
    return Upload(archive, {**request.parameters(), **_parameters_in(parts.get("prepareParams"))})


def _check_body(request: Request) -> None:
    if not request.body:
        raise InvalidInput("Request contains no data")
    if not request.content_type:
        raise InvalidInput("Request contains no Content-Type header")


def _check_size(archive: bytes) -> bytes:
    if len(archive) > limits.HTTP_PACKAGE_BODY_BYTES:
        raise TooLarge(f"An application package has at most {limits.HTTP_PACKAGE_BODY_BYTES} bytes")
    return archive


def _parameters_in(part: Part | None) -> dict[str, str]:
    """The JSON object of parameters, each as it would stand in an address."""
    if part is None:
        return {}
    try:
        found = orjson.loads(part.content or b"{}")
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"The part 'prepareParams' is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInput("The part 'prepareParams' is not a JSON object")
    return {name: _text(value) for name, value in found.items() if isinstance(value, str | bool | int | float)}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def flag(parameters: Mapping[str, str], *names: str) -> bool:
    """Whether one of the parameters is `true`. A parameter without a value is; what else it may be is `false`."""
    return any(parameters.get(name, "false").lower() in ("true", "") for name in names)


def seconds(parameters: Mapping[str, str], default: float, name: str = "timeout") -> float:
    """A time: a number of seconds, or a number with a unit (`500ms`, `60s`, `2m`). Errors: InvalidInput."""
    text = parameters.get(name)
    if text is None:
        return default
    found = _DURATION.fullmatch(text)
    value = float(found[1]) * _UNITS[(found[2] or "s").lower()] if found else math.inf
    if value > limits.DEPLOY_TIMEOUT_SECONDS:
        raise InvalidInput(
            f"Illegal value '{text}' of '{name}': it is a number of seconds, or a number and ms, s, m or h"
        )
    return value


def check_version(parameters: Mapping[str, str]) -> None:
    """Checks the version of Vespa that a request demands. Errors: UnknownVersion for another major one."""
    version = wanted_version(parameters)
    if version is None:
        return
    if not _VERSION.fullmatch(version):
        raise InvalidInput(f"Illegal version '{version}'")
    if version.partition(".")[0] != VESPA_VERSION.partition(".")[0]:
        raise UnknownVersion(f"Unknown Vespa version '{version}': this is version {VESPA_VERSION}")


def wanted_version(parameters: Mapping[str, str]) -> str | None:
    """By Vespa's name or that of the interface specification."""
    return parameters.get("vespaVersion") or parameters.get("serviceVersion") or None


# The addresses of the Deploy API that its answers name, and the names that its paths hold.


TENANTS: Final = "/application/v2/tenant"
TENANT: Final = TENANTS + "/{tenant}"
SHORT_APPLICATION: Final = TENANT + "/application/{application}"
"""The path of the instance `default` of an application."""
APPLICATION: Final = SHORT_APPLICATION + "/environment/{environment}/region/{region}/instance/{instance}"
"""The path of an application. Environment and region name no other application: there is one zone."""
SESSION: Final = TENANT + "/session/{session}"
_APPLICATION_SEGMENTS: Final = APPLICATION.removeprefix("/").split("/")


def application_in_path(names: Mapping[str, str]) -> ApplicationId:
    """The application that a path names, whether there is one or not."""
    return ApplicationId(names["tenant"], names["application"], names.get("instance", DEFAULT))


def application_in_parameters(tenant: str, parameters: Mapping[str, str]) -> ApplicationId:
    """The application that a preparation is for. Errors: InvalidInput for a name that it cannot have."""
    application = parameters.get("applicationName", DEFAULT)
    instance = parameters.get("instance", DEFAULT)
    return ApplicationId(tenant, check_name("application", application), check_name("instance", instance))


def application_in_url(tenant: str, url: str) -> ApplicationId:
    """The application that a session is to be made from. Errors: InvalidInput for the url of something else."""
    try:
        segments = path_segments(urlsplit(url).path.removesuffix("/"))
    except (ValueError, PaperwaspError):
        segments = ()
    names: dict[str, str] = {}
    fits = len(segments) == len(_APPLICATION_SEGMENTS)
    for pattern, segment in zip(_APPLICATION_SEGMENTS, segments, strict=False):
        if pattern.startswith("{"):
            names[pattern[1:-1]] = segment
        fits = fits and bool(segment) and (pattern.startswith("{") or pattern == segment)
    if not fits or names["tenant"] != tenant:
        raise InvalidInput(f"'from' is not the url of an application of tenant '{tenant}': '{url}'")
    return application_in_path(names)


def session_in_path(names: Mapping[str, str]) -> int:
    """Errors: InvalidInput where it is not a number."""
    text = names["session"]
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput(f"Session id in request is not a number, request was '{text}'")
    return int(text)


def tenant_url(request: Request, tenant: str) -> str:
    return f"{request.base_url}{TENANTS}/{quote(tenant, safe='')}"


def application_url(request: Request, application: ApplicationId) -> str:
    path = f"application/{application.application}/environment/prod/region/default/instance/{application.instance}"
    return f"{tenant_url(request, application.tenant)}/{path}"


def session_url(request: Request, tenant: str, session_id: int) -> str:
    return f"{tenant_url(request, tenant)}/session/{session_id}"
