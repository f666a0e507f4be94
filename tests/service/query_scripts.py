"""Golden scripts of queries: what a client asks of a deployed application, and what it is answered.

Cases are parted by blank lines; lines that begin with `#` before a case are remarks. A case begins with one of

- a YQL statement, `where …` for `select * from music where …`, or `query` where there is none; lines `name=value` are
  further parameters. The answer is the HTTP status and the total count, then for `where` the last parts of the hits'
  ids, in order, else a line with each hit's fields; or `400 error CODE: message`;
- `GET parameters` or `POST parameters`, then headers and the body: the answer is whole, times as `…`.

The answer comes after a line `---`. In `query_scripts/` are the scripts, the application and its documents.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the service says into the script instead of comparing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import cbor2
import orjson

from tests import web
from tests.service.in_process import Deployed, active

SCRIPTS = Path(__file__).parent / "query_scripts"
TIMES = frozenset(
    (
        "querytime",
        "summaryfetchtime",
        "searchtime",
        "timestamp",
        "start_time",
        "duration_ms",
        "timestamp_ms",
        "self_ms",
        "total_ms",
        "time_us",
        "steps",
    )
)
"""Members whose values are not shown: times, and what did each step, since rows are filled behind the writer."""
STREAMED = ".streaming"


def deploy_and_feed(service: Deployed, scripts: Path = SCRIPTS, mode: str = "index") -> None:
    """Deploys the application beside some scripts, all its documents in one mode, and feeds it."""
    folder = scripts / "application"
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    files["services.xml"] = files["services.xml"].replace('mode="index"', f'mode="{mode}"')
    active(service.deploy(files))
    for line in (scripts / "documents.jsonl").read_text().splitlines():
        put = orjson.loads(line)
        _, namespace, kind, owner, name = put["put"].split(":", 4)
        place = f"group/{owner[2:]}" if owner else "docid"
        path = f"{service.url}/document/v1/{namespace}/{kind}/{place}/{name}"
        answer = web.post(path, json={"fields": put["fields"]}, timeout=30)
        assert answer.status_code == 200, answer.text


def scripts_in(folder: Path) -> list[Path]:
    """The scripts of a folder; beside one may stand what streaming search answers, which has no statistics of words and
    runs one phase."""
    return sorted(path for path in folder.glob("*.txt") if not path.stem.endswith(STREAMED))


def script_of(script: Path, mode: str) -> Path:
    """The script that a mode is to answer as."""
    streamed = script.with_name(f"{script.stem}{STREAMED}.txt")
    return streamed if mode == "streaming" and streamed.exists() else script


def run(service: Deployed, script: Path, ask: Callable[..., str] | None = None) -> None:
    """Asks the cases of a script. `ask`: from the address of the search and the lines of a case to the answer."""
    text = script.read_text()
    answered = "\n\n".join(_answered(service, case, ask) for case in text.strip().split("\n\n")) + "\n"
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        script.write_text(answered)
    else:
        assert answered == text, script.name


def _answered(service: Deployed, case: str, ask: Callable[..., str] | None) -> str:
    """The case with what the service answers; a remark stays as it is."""
    question = case.partition("\n---")[0]
    lines = [line for line in question.splitlines() if not line.startswith("#")]
    if not lines:
        return case
    if ask is None:
        ask = whole if lines[0].split()[0] in ("GET", "POST") else in_short
    return f"{question}\n---\n{ask(f'{service.url}/search/', *lines)}"


def in_short(url: str, statement: str, *parameters: str) -> str:
    body = {"timeout": "20s", **dict(line.split("=", 1) for line in parameters)}
    if statement != "query":
        body["yql"] = f"select * from music {statement}" if statement.startswith("where") else statement
    answer = web.post(url, json=body, timeout=30)
    return f"{answer.status_code} {_told(answer.json()['root'], statement.startswith('where'))}".rstrip()


def _told(root: dict[str, object], ids_only: bool) -> str:
    if errors := root.get("errors"):
        return "\n".join(f"error {error['code']}: {error['message']}" for error in errors)  # type: ignore[attr-defined]
    total = root["fields"]["totalCount"]  # type: ignore[index]
    hits: list[dict[str, object]] = root.get("children", [])  # type: ignore[assignment]
    if ids_only:
        return " ".join([f"{total}:", *(str(hit["id"]).rpartition(":")[2] for hit in hits)])
    return "\n".join([str(total), *(orjson.dumps(hit.get("fields", {})).decode() for hit in hits)])


def whole(url: str, request: str, *rest: str) -> str:
    """The whole answer to a request that is written out."""
    method, _, query = request.partition(" ")
    said = [line for line in rest if not line.startswith("{")]
    headers = dict(line.split(": ", 1) for line in said if ": " in line)
    body = "\n".join(line for line in rest if line not in said or ": " not in line)
    parameters = query.replace(" ", "+") + ("" if "timeout=" in query + body else "&timeout=20s")
    answer = web.request(method, f"{url}?{parameters}", headers=headers, content=body, timeout=30)
    kind = answer.headers.get("content-type", "")
    if kind == "application/cbor":
        content = cbor2.loads(answer.content)
    elif answer.text.endswith(");") or "xml" in kind:
        return f"{answer.status_code} {kind}\n{answer.text.rstrip()}"
    else:
        content = answer.json()
    return f"{answer.status_code} {kind}\n{orjson.dumps(_timeless(content), option=orjson.OPT_INDENT_2).decode()}"


def _timeless(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: "…" if name in TIMES else _timeless(each) for name, each in value.items()}
    return [_timeless(each) for each in value] if isinstance(value, list) else value
