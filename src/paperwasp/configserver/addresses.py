"""The addresses of the Deploy API that its answers name, and the names that its paths hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paperwasp.configserver.sessions import ApplicationId
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import Request

ROOT: Final = "/application/v2/tenant/{tenant}"
APPLICATION: Final = ROOT + "/application/{application}/environment/{environment}/region/{region}/instance/{instance}"
"""The path of an application. Environment and region name no other application: there is one zone."""
SESSION: Final = ROOT + "/session/{session}"

_TENANT: Final = "default"


def check_tenant(names: Mapping[str, str]) -> None:
    """Errors: NotFound for a tenant that is not the one there is."""
    if names["tenant"] != _TENANT:
        raise NotFound(f"Tenant '{names['tenant']}' was not found.")


def application_in_path(names: Mapping[str, str]) -> ApplicationId:
    check_tenant(names)
    return ApplicationId(names["tenant"], names["application"], names["instance"])


def application_in_parameters(parameters: Mapping[str, str]) -> ApplicationId:
    """The application that a preparation is for. Errors: InvalidInput for a name that no path could hold."""
    application = ApplicationId(
        _TENANT, parameters.get("applicationName", "default"), parameters.get("instance", "default")
    )
    for name in (application.application, application.instance):
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise InvalidInput(f"'{name}' is not a name of an application or instance")
    return application


def session_in_path(names: Mapping[str, str]) -> int:
    """Errors: InvalidInput where it is not a number."""
    check_tenant(names)
    text = names["session"]
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput(f"Session id in request is not a number, request was '{text}'")
    return int(text)


def tenant_url(request: Request) -> str:
    return f"{request.base_url}/application/v2/tenant/{_TENANT}"


def application_url(request: Request, application: ApplicationId) -> str:
    path = f"application/{application.application}/environment/prod/region/default/instance/{application.instance}"
    return f"{tenant_url(request)}/{path}"


def session_url(request: Request, session_id: int) -> str:
    return f"{tenant_url(request)}/session/{session_id}"
