"""Models evaluated by pyvespa: what endpoints there are, and predictions. The expected values are worked by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from vespa.application import Vespa, VespaSync

from tests.application.model_evaluation.packages import files
from tests.service.in_process import Deployed, active, deployed_service

pytestmark = pytest.mark.clients
SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><model-evaluation/></container>
</services>"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("models")) as service:
        active(service.deploy({"services.xml": SERVICES, **files()}))
        yield service


@pytest.fixture
def app(service: Deployed) -> Vespa:
    return Vespa(service.container_url())


def endpoints(app: Vespa, model: str | None = None) -> dict[str, Any]:
    """What pyvespa gives: a dict, whatever its annotation says."""
    found: Any = app.get_model_endpoint(model)
    return dict(found)


def test_endpoints(app: Vespa, service: Deployed) -> None:
    root = f"{service.container_url()}/model-evaluation/v1/"
    assert endpoints(app)["trees"] == f"{root}trees"
    [function] = endpoints(app, "layer")["functions"]
    assert function == {
        "function": "y",
        "info": f"{root}layer/y",
        "eval": f"{root}layer/y/eval",
        "arguments": [{"name": "x", "type": "tensor<float>(d0[],d1[4])"}],
    }
    assert endpoints(app, "nobody")["status_code"] == 404


def test_predictions(app: Vespa) -> None:
    with VespaSync(app) as client:
        given = urlencode({"x": "tensor<float>(d0[1],d1[4]):[[0,0,0,1]]"})
        assert client.predict("layer", "y", given)["values"] == [[9, 10, 11]]
        assert client.predict("trees", "trees", "f1=1")["values"] == [22.5]
        assert client.predict("layer", "y", "")["status_code"] == 400


def test_a_container_without_models(tmp_path: Path) -> None:
    """A container without the element has no endpoints."""
    with deployed_service(tmp_path) as service:
        active(service.deploy({"services.xml": SERVICES.replace("model-evaluation", "search"), **files()}))
        assert endpoints(Vespa(service.container_url()))["status_code"] == 404
