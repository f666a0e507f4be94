"""Golden scripts of ranking expressions: each case is a rank profile of one deployed application.

Cases are parted by blank lines; lines that begin with `#` before a case are remarks. The first line of a case is

- `rank EXPRESSION`: the first phase, which is a number: the answer has the relevance of each document, in its order;
- `show EXPRESSION`: what the expression is for each document: a number, or a tensor as match-features show it.

Further lines are statements of the rank profile, but `query(name)=value`, which is an input of the query, and `yql …`.
The answer comes after a line `---`: for each document the last part of its id and the value, with six digits; or
`400 error CODE: message`. In `ranking_scripts/` are the scripts, the application and its documents.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script instead of comparing.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from tests import web
from tests.service.in_process import Deployed, active
from tests.service.query_scripts import STREAMED, scripts_in

SCRIPTS = Path(__file__).parent / "ranking_scripts"


@dataclass(frozen=True)
class Case:
    """One case, and the name of its rank profile."""

    profile: str
    question: str
    answer: str
    kind: str = ""
    expression: str = ""
    statements: tuple[str, ...] = ()
    inputs: dict[str, str] = field(default_factory=dict)
    yql: str = "select * from thing where true"

    @classmethod
    def read(cls, profile: str, text: str) -> Case:
        question, _, answer = text.partition("\n---")
        lines = [line for line in question.splitlines() if not line.startswith("#")]
        if not lines:
            return cls(profile, text, "")
        kind, _, expression = lines[0].partition(" ")
        given = dict(line.split("=", 1) for line in lines[1:] if line.startswith("query("))
        yql = next((line[4:] for line in lines[1:] if line.startswith("yql ")), cls.yql)
        statements = tuple(line for line in lines[1:] if not line.startswith(("query(", "yql ")))
        return cls(profile, question, answer, kind, expression, statements, given, yql)

    def source(self, *, is_given: bool = False) -> str:
        """The rank profile; `is_given`: without the expression, which queries bring."""
        if is_given:
            return "\n".join([f"  rank-profile {self.profile} {{", *(f"    {line}" for line in self.statements), "  }"])
        phase = f"first-phase {{ expression {{ {self.expression} }} }}"
        shown = f"function shown() {{ expression {{ {self.expression} }} }} match-features: shown"
        lines = [*self.statements, phase if self.kind == "rank" else shown]
        return "\n".join([f"  rank-profile {self.profile} {{", *(f"    {line}" for line in lines), "  }"])

    def given(self) -> dict[str, str]:
        """The expression as the parameters of a query."""
        if self.kind == "rank":
            return {"ranking.firstPhase.expression": self.expression}
        escaped = self.expression.replace("\\", "\\\\").replace('"', '\\"')
        return {"ranking.matchFeatures.expression": f'rankingExpression("{escaped}")'}


def cases_of(script: Path) -> list[Case]:
    texts = script.read_text().strip().split("\n\n")
    return [Case.read(f"{script.stem.removesuffix(STREAMED)}_{number}", text) for number, text in enumerate(texts)]


def deploy_and_feed(service: Deployed, mode: str, *, are_given: bool = False) -> None:
    """Deploys all cases of all scripts as the rank profiles of one application, and feeds it. `are_given`: without
    their expressions, which queries bring."""
    folder = SCRIPTS / "application"
    profiles = [
        case.source(is_given=are_given) for script in scripts_in(SCRIPTS) for case in cases_of(script) if case.kind
    ]
    schema = (folder / "thing.sd").read_text().replace("PROFILES", "\n".join(profiles))
    services = (folder / "services.xml").read_text().replace('mode="index"', f'mode="{mode}"')
    files = {"services.xml": services, "schemas/thing.sd": schema}
    files |= {f"constants/{path.name}": path.read_text() for path in (folder / "constants").glob("*.json")}
    told = active(service.deploy(files))
    assert "not executed yet" not in str(told), told
    for line in (SCRIPTS / "documents.jsonl").read_text().splitlines():
        put = orjson.loads(line)
        path = f"{service.url}/document/v1/n/thing/docid/{put['put'].rpartition(':')[2]}"
        answer = web.post(path, json={"fields": put["fields"]}, timeout=30)
        assert answer.status_code == 200, answer.text


def run(service: Deployed, script: Path, are_given: bool = False, **parameters: str) -> None:
    cases = cases_of(script)
    told = []
    for case in cases:
        more = parameters | (case.given() if are_given else {})
        told.append(f"{case.question}\n---\n{answered(service, case, **more)}" if case.kind else case.question)
    text = "\n\n".join(told) + "\n"
    if are_given:
        assert text == script.read_text(), script.name
    elif os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        script.write_text(text)
    else:
        assert text == script.read_text(), script.name


def answered(service: Deployed, case: Case, **parameters: str) -> str:
    body = {"yql": case.yql, "ranking": case.profile, "timeout": "20s", "format.tensors": "short-value", **parameters}
    body |= {f"input.{name}": value for name, value in case.inputs.items()}
    answer = web.post(f"{service.url}/search/", json=body, timeout=30)
    root = answer.json()["root"]
    if errors := root.get("errors"):
        return f"{answer.status_code} error {errors[0]['code']}: {errors[0]['message']}"
    shown = [(str(hit["id"]).rpartition(":")[2], _value(case, hit)) for hit in root.get("children", ())]
    return "\n".join(f"{name} {value}" for name, value in (shown if case.kind == "rank" else sorted(shown)))


def _value(case: Case, hit: dict[str, object]) -> str:
    if case.kind == "rank":
        return _digits(hit["relevance"])
    fields: dict[str, dict[str, object]] = hit["fields"]  # type: ignore[assignment]
    (shown,) = fields["matchfeatures"].values()
    return _digits(shown)


def _digits(value: object) -> str:
    """With six digits; labels in their order."""
    if isinstance(value, list):
        parts = [_digits(each) for each in value]
        return f"[{','.join(sorted(parts) if '{' in ''.join(parts) else parts)}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_digits(each)}" for name, each in sorted(value.items())) + "}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
