"""The addresses of the Deploy API that its answers name, and the names that its paths hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from paperwasp.configserver.names import DEFAULT, ApplicationId, check_name
from paperwasp.errors import InvalidInput, PaperwaspError
from paperwasp.http.messages import Request, path_segments

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
