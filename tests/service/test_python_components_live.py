"""Components written in Python in a whole service: they run where it was started so, and go with their generation."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests import web
from tests.service.in_process import Deployed, active, deployed_service

SERVICES = """<services version="1.0">
  <container id="default" version="1.0">
    <search/><document-api/>
    <component id="mine" class="mine.Mine" bundle="python">
      <config name="mine"><sign>!</sign></config>
    </component>
  </container>
  <content id="c" version="1.0"><redundancy>1</redundancy><documents><document type="t" mode="index"/></documents>
  </content>
</services>"""
SCHEMA = """schema t {
    document t {
        field text type string { indexing: summary }
    }
    field parts type array<string> { indexing: input text | chunk mine | summary }
    field length type int { indexing: input text | generate mine | attribute | summary }
    field vector type tensor<float>(x[1]) { indexing: input text | embed mine | attribute }
    rank-profile near {
        inputs { query(q) tensor<float>(x[1]) }
        first-phase { expression: sum(query(q) * attribute(vector)) }
    }
}"""
CODE = """
class Mine:
    def __init__(self, setup):
        self.sign = setup.settings["sign"]

    def chunk(self, text, call):
        return [part + self.sign for part in text.split()]

    def generate(self, prompt, call):
        return len(prompt)

    def embed(self, texts, call):
        return [[1 / (text != "zero")] for text in texts]
"""
FILES = {"services.xml": SERVICES, "schemas/t.sd": SCHEMA, "components/mine.py": CODE}
FLAG = "component 'mine' is written in Python, which this service does not run: start it with --allow-python-components"


def put(service: Deployed, name: str, text: str) -> httpx.Response:
    return web.post(f"{service.url}/document/v1/ns/t/docid/{name}", json={"fields": {"text": text}}, timeout=30)


def fields(service: Deployed, name: str) -> tuple[object, object]:
    found = web.get(f"{service.url}/document/v1/ns/t/docid/{name}", params={"fieldSet": "[all]"}).json()["fields"]
    return found["parts"], found["length"]


def relevance(service: Deployed, text: str) -> httpx.Response:
    body = {"yql": "select * from t where true", "ranking": "near", "input.query(q)": f"embed(mine, '{text}')"}
    return web.post(f"{service.url}/search/", json={**body, "timeout": "20s"}, timeout=30)


def test_a_service_runs_no_python_unless_it_was_started_so(tmp_path: Path) -> None:
    loaded = {**FILES, "components/mine.py": "raise SystemExit"}
    with deployed_service(tmp_path) as service:
        answered = service.deploy(loaded)
        assert (answered.status_code, answered.json()["error-code"]) == (412, "INVALID_APPLICATION_PACKAGE")
        assert answered.json()["message"] == f"Invalid application package: services.xml, line 4, column 5: {FLAG}"


def test_documents_and_queries(tmp_path: Path) -> None:
    with deployed_service(tmp_path, allow_python_components=True) as service:
        active(service.deploy(FILES))
        assert put(service, "1", "a bc").status_code == 200
        assert fields(service, "1") == (["a!", "bc!"], 4)
        assert relevance(service, "x").json()["root"]["children"][0]["relevance"] == 1.0
        refused = put(service, "2", "zero")
        assert (refused.status_code, refused.json()["message"]) == (
            400,
            "In document 'id:ns:t::2': Could not index field 'vector': components/mine.py, line 13, in <listcomp>: "
            "ZeroDivisionError: division by zero",
        )
        refused = relevance(service, "zero")
        assert refused.status_code == 400
        assert "components/mine.py, line 13, in <listcomp>: ZeroDivisionError" in refused.text
        assert put(service, "3", "next").status_code == 200


def test_each_generation_has_its_own_code(tmp_path: Path) -> None:
    with deployed_service(tmp_path, allow_python_components=True) as service:
        active(service.deploy(FILES))
        put(service, "1", "a b")
        active(service.deploy({**FILES, "components/mine.py": CODE.replace("text.split()", "[text]")}))
        put(service, "2", "a b")
        active(service.deploy({**FILES, "services.xml": SERVICES.replace("!", "?")}))
        put(service, "3", "a b")
        assert [fields(service, name)[0] for name in "123"] == [["a!", "b!"], ["a b!"], ["a?", "b?"]]
        broken = service.deploy({**FILES, "components/mine.py": "class Mine:\n    def embed(self: pass"})
        assert "component 'mine': components/mine.py, line 2: SyntaxError: " in broken.json()["message"]
        put(service, "4", "a b")
        assert fields(service, "4")[0] == ["a?", "b?"]


def test_a_restart_without_the_flag_leaves_the_application_out(tmp_path: Path) -> None:
    with deployed_service(tmp_path, allow_python_components=True) as service:
        active(service.deploy(FILES))
        put(service, "1", "a b")
    with deployed_service(tmp_path) as service:
        assert web.get(f"{service.url}/document/v1/ns/t/docid/1").status_code == 503
    with deployed_service(tmp_path, allow_python_components=True) as service:
        assert fields(service, "1") == (["a!", "b!"], 3)
        put(service, "2", "c d")
        assert fields(service, "2") == (["c!", "d!"], 3)
