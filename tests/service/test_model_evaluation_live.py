"""Models evaluated over HTTP: the examples of docs/reference/model-evaluation.md, and what a deployment changes."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import orjson

from tests import web
from tests.application.model_evaluation.packages import files
from tests.docs.pages import DOCS
from tests.service.in_process import active, deployed_service

BLOCK = re.compile(r"^`([^`\n]+)`:\n\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FORM = {"content-type": "application/x-www-form-urlencoded"}
SERVICES = """<services version="1.0">
  <container id="default" version="1.0">{}</container>
  <container id="other" version="1.0"><search/></container>
</services>"""
LAYER = "/model-evaluation/v1/layer/eval"


def test_the_page(tmp_path: Path) -> None:
    blocks = BLOCK.findall((DOCS / "reference" / "model-evaluation.md").read_text())
    requests = [(name, text) for name, text in blocks if name.startswith(("GET ", "POST "))]
    assert len(requests) == 6
    with deployed_service(tmp_path) as service:
        active(service.deploy({name: text for name, text in blocks if "/v1/" not in name}))
        for name, expected in requests:
            method, path, *body = name.split(" ", 2)
            answer = web.request(
                method,
                service.container_url() + path,
                headers={"host": "localhost:8080", **FORM},
                content="".join(body),
            )
            assert answer.headers["content-type"] == "application/json"
            assert answer.json() == orjson.loads(expected), answer.text


def test_what_deployments_change(tmp_path: Path) -> None:
    """The API is there for one container of two; then the models are others; then it is not there."""
    with deployed_service(tmp_path) as service:
        active(service.deploy({"services.xml": SERVICES.format("<model-evaluation/>"), **files()}))
        url = service.container_url()
        root = f"{url}/model-evaluation/v1"
        assert sorted(web.get(root).json()) == ["add_mul", "layer", "light", "own_example", "trees", "words"]
        assert web.get(service.container_url("other") + "/model-evaluation/v1").status_code == 404
        assert "ModelsEvaluationHandler" in web.get(url + "/").text
        row = {"x": "[[0,0,0,1]]"}
        assert web.get(url + LAYER, params={**row, "format.tensors": "short-value"}).json() == [[9, 10, 11]]
        refused = web.post(url + LAYER, content=b"x=" + b"1" * (17 << 20), headers=FORM)
        assert (refused.status_code, list(refused.json())) == (413, ["error"])

        fewer = {"models/layer.onnx": files()["models/layer.onnx"]}
        active(service.deploy({"services.xml": SERVICES.format("<search/><model-evaluation/>"), **fewer}))
        assert list(web.get(root).json()) == ["layer"]
        assert web.get(url + LAYER, params={**row, "format.tensors": "string"}).text == (
            "tensor<float>(d0[1],d1[3]):[[9.0, 10.0, 11.0]]"
        )
        active(service.deploy({"services.xml": SERVICES.format("<search/>"), **fewer}))
        assert [web.get(root + path).status_code for path in ("", "/", "/layer", "/layer/eval")] == [404] * 4
        assert "ModelsEvaluationHandler" not in web.get(url + "/").text


def test_many_clients_at_once(tmp_path: Path) -> None:
    async def ask(url: str) -> list[object]:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            asked = (
                client.post(url, data={"x": f"[[{n},0,0,1]]", "format.tensors": "short-value"}) for n in range(100)
            )
            return [answer.json() for answer in await asyncio.gather(*asked)]

    with deployed_service(tmp_path) as service:
        active(service.deploy({"services.xml": SERVICES.format("<model-evaluation/>"), **files()}))
        found = asyncio.run(ask(service.container_url() + LAYER))
        assert found == [[[9, n + 10, 2 * n + 11]] for n in range(100)]


def test_a_start_from_the_disk(tmp_path: Path) -> None:
    with deployed_service(tmp_path) as service:
        active(service.deploy({"services.xml": SERVICES.format("<model-evaluation/>"), **files()}))
    with deployed_service(tmp_path) as service:
        trees = web.get(f"{service.container_url()}/model-evaluation/v1/trees/eval", params={"f1": "1"}).json()
        assert trees["values"] == [22.5]
