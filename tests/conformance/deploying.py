"""Steps of deployments over HTTP, each with the status that it must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from tests import web
from tests.conformance.application import NOTE
from tests.conformance.conftest import Served
from tests.service.in_process import ZIP
from tests.service.music import package

SMALL: Final[dict[str, str | bytes]] = {
    "services.xml": """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="notes" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="note" mode="index"/></documents>
  </content>
</services>
""",
    "schemas/note.sd": NOTE,
}
OTHER_TYPE: Final[dict[str, str | bytes]] = {
    **SMALL,
    "schemas/note.sd": NOTE.replace("stars type int", "stars type string"),
}
"""Valid in itself, but no change of SMALL that is made without leave: a field has another type."""
BROKEN: Final[dict[str, str | bytes]] = {**SMALL, "schemas/note.sd": NOTE.replace("type int", "type nothing")}


def tenant_url(served: Served) -> str:
    return f"{served.config_url}/application/v2/tenant/default"


def application_url(served: Served, application: str = "default") -> str:
    """Return the specification's `APP` of an application with the default instance."""
    return served.service.application_url(f"default.{application}.default")


def upload(served: Served, files: Mapping[str, str | bytes] = SMALL) -> str:
    """Make a session and return its id."""
    answer = web.post(f"{tenant_url(served)}/session", content=package(files), headers=ZIP)
    assert answer.status_code == 200, answer.text
    session: str = answer.json()["session-id"]
    return session


def prepare(served: Served, session: str, application: str, **parameters: str) -> httpx.Response:
    path = f"{tenant_url(served)}/session/{session}/prepared"
    return web.put(path, params={"applicationName": application, **parameters})


def activate(served: Served, session: str, **parameters: str) -> httpx.Response:
    return web.put(f"{tenant_url(served)}/session/{session}/active", params=parameters)


def deploy(
    served: Served, application: str, files: Mapping[str, str | bytes] = SMALL, **parameters: str
) -> httpx.Response:
    """Upload, prepare and activate in one step."""
    return served.service.deploy(files, f"default.{application}.default", **parameters)


def ok(answer: httpx.Response) -> Any:
    """Return the content of an answer that must have succeeded."""
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer: httpx.Response, status: int, code: str) -> str:
    """Return the message of an error of the Deploy API; its body is what the specification says."""
    body = answer.json()
    assert (answer.status_code, sorted(body), body["error-code"]) == (status, ["error-code", "message"], code), (
        answer.text
    )
    message: str = body["message"]
    return message
