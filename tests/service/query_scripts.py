"""Golden scripts of queries: what a client asks of a deployed application, and what it is answered.

Cases are parted by blank lines; lines that begin with `#` before a case are remarks. A case begins with a YQL
statement, `where …` for `select * from music where …`, or `query` where there is none; lines `name=value` are further
parameters. After a line `---` comes the answer: the HTTP status and the total count, then for `where` the last parts of
the hits' ids, in order, else a line with each hit's fields; or `400 error CODE: message`. In `query_scripts/` are the
scripts, the application and its documents. PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script
instead of comparing.
"""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import orjson
from in_process import Deployed, active

SCRIPTS = Path(__file__).parent / "query_scripts"


def deploy_and_feed(service: Deployed) -> None:
    folder = SCRIPTS / "application"
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    active(service.deploy(files))
    for line in (SCRIPTS / "documents.jsonl").read_text().splitlines():
        put = orjson.loads(line)
        _, namespace, kind, owner, name = put["put"].split(":", 4)
        place = f"group/{owner[2:]}" if owner else "docid"
        path = f"{service.url}/document/v1/{namespace}/{kind}/{place}/{name}"
        answer = httpx.post(path, json={"fields": put["fields"]}, timeout=30)
        assert answer.status_code == 200, answer.text


def run(service: Deployed, script: Path) -> None:
    text = script.read_text()
    answered = "\n\n".join(_answered(service, case) for case in text.strip().split("\n\n")) + "\n"
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        script.write_text(answered)
    else:
        assert answered == text, script.name


def _answered(service: Deployed, case: str) -> str:
    """The case with what the service answers; a remark stays as it is."""
    question = case.partition("\n---")[0]
    lines = [line for line in question.splitlines() if not line.startswith("#")]
    if not lines:
        return case
    statement, *parameters = lines
    body = {"timeout": "20s", **dict(line.split("=", 1) for line in parameters)}
    if statement != "query":
        body["yql"] = f"select * from music {statement}" if statement.startswith("where") else statement
    answer = httpx.post(f"{service.url}/search/", json=body, timeout=30)
    return f"{question}\n---\n{answer.status_code} {_told(answer.json()['root'], statement.startswith('where'))}"


def _told(root: dict[str, object], ids_only: bool) -> str:
    if errors := root.get("errors"):
        return "\n".join(f"error {error['code']}: {error['message']}" for error in errors)  # type: ignore[attr-defined]
    total = root["fields"]["totalCount"]  # type: ignore[index]
    hits: list[dict[str, object]] = root.get("children", [])  # type: ignore[assignment]
    if ids_only:
        return " ".join([f"{total}:", *(str(hit["id"]).rpartition(":")[2] for hit in hits)])
    return "\n".join([str(total), *(orjson.dumps(hit["fields"]).decode() for hit in hits)])
