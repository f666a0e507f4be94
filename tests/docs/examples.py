"""The examples of a page, run from top to bottom as a reader would.

What a block of code is stands before it:

    `services.xml`:          a file of the application package; so is `schemas/music.sd`, `models/tree.json` …
    `books.jsonl`:           a file in the reader's folder (.csv, .json, .jsonl, .py, .toml without a folder)
    `POST /search/`:         a request with the block as its body; so is `PUT`
    `GET /search/?…`:        a request with the block as its answer; so is `DELETE`
    Hits:                    fields of the hits that the last request found; `relevance` and `id` are those of the hit
    Groups:                  what is below the root of the last answer, groups of a query without hits
    Answer:                  members of the last answer's JSON; `"…"` stands for any value, `…` for any part of a text
    a fence ```python        statements, or a session with `>>>` whose values are compared
    a fence ```console       lines `$ command` with what they print; `…` stands for anything in a line, or for lines

Comments of HTML are for the tests alone:

    <!-- application: five-minutes -->   the page begins with the application and documents of start/five-minutes.md
    <!-- folder: shop -->                the folder of the application package; without it, `music`
    <!-- not run: why -->                the next block is not run
    <!-- status: 400 -->                 the next request is answered with this status

A changed package is deployed before the next request. One without services.xml gets one for its schemas.
"""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

import paperwasp
from tests import web
from tests.client.commands import run_command
from tests.docs.pages import DOCS
from tests.service.in_process import Deployed, active, deployed_service

FIVE_MINUTES: Final = DOCS / "start" / "five-minutes.md"
APPLICATION: Final = "music"
"""The folder of the application package, on pages that name no other."""
_FOLDER: Final = re.compile(r"^<!-- folder: (\w+) -->$", re.MULTILINE)
_FROM_THERE: Final = "<!-- application: five-minutes -->\n"
_BLOCK: Final = re.compile(
    r"^(?P<marks>(?:<!-- [^\n]* -->\n+)*)(?:(?P<label>`[^`\n]+`|[^\n]*\b(?:Hits|Groups|Answer)):\n\n)?"
    r"(?P<marks_below>(?:<!-- [^\n]* -->\n+)*)```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_HERE_DOCUMENT: Final = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)
_REQUEST: Final = re.compile(r"(GET|POST|PUT|DELETE) (\S+)")
_LOCAL: Final = re.compile(r"[\w-]+\.(?:csv|jsonl?|py|toml)")
_DOCTEST_FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
_SERVICES: Final = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="{name}" version="1.0">
    <redundancy>1</redundancy>
    <documents>{documents}</documents>
    <nodes><node hostalias="node1" distribution-key="0"/></nodes>
  </content>
</services>
"""


@dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    label: str
    kind: str
    text: str
    marks: Mapping[str, str]
    line: int


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page that are run or compared, and the others."""
    written = page.read_text()
    found = []
    for match in _BLOCK.finditer(written):
        marks = dict(re.findall(r"<!-- ([\w ]+): (.*?) -->", match["marks"] + match["marks_below"]))
        label = (match["label"] or "").strip("`")
        label = label.rpartition(" ")[2] if label.endswith(("Hits", "Groups", "Answer")) else label
        line = written.count("\n", 0, match.start("text"))
        found.append(Block(label, match["kind"], match["text"], marks, line))
    return found


@dataclass
class Reader:
    """Who goes through a page: what they have written, asked and got."""

    page: Path
    folder: Path
    service: Deployed | None = None
    package: dict[str, str | bytes] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    """Texts of the page's files that stand for others here, such as addresses."""
    is_deployed: bool = True
    answer: Any = None
    names: dict[str, Any] = field(default_factory=dict)
    runs: int = 0
    """How many blocks were requests, sessions and commands, or were compared."""

    def read(self) -> None:
        """Runs all blocks of the page."""
        if _FROM_THERE in self.page.read_text():
            self._take_five_minutes()
        for block in blocks_of(self.page):
            if "not run" not in block.marks:
                try:
                    self._take(block)
                except AssertionError as error:
                    raise AssertionError(f"{self.page.name}:{block.line}: {error}") from error

    def _take(self, block: Block) -> None:
        request = _REQUEST.fullmatch(block.label)
        status = int(block.marks.get("status", "200"))
        if request and request[1] in ("GET", "DELETE"):
            self._ask(request[1], request[2], "", status)
            self._compare(orjson.loads(block.text), self.answer, "the answer")
        elif request:
            self._ask(request[1], request[2], block.text, status)
        elif block.label == "Hits":
            self._compare_hits(orjson.loads(block.text))
        elif block.label == "Groups":
            self._compare(orjson.loads(block.text), self.answer["root"]["children"], "the groups")
        elif block.label == "Answer":
            self._compare(orjson.loads(block.text), self.answer, "the answer")
        elif _LOCAL.fullmatch(block.label):
            (self.folder / block.label).write_text(block.text)
        elif block.label:
            self._write(block.label, block.text)
        elif block.kind == "python":
            self._run_python(block)
        elif block.kind == "console":
            self._run_commands(block.text)

    def _take_five_minutes(self) -> None:
        files = dict(_HERE_DOCUMENT.findall(FIVE_MINUTES.read_text()))
        documents = files.pop("music.jsonl")
        for name, text in files.items():
            self._write(name.removeprefix(f"{APPLICATION}/"), text)
        for line in documents.splitlines():
            put = orjson.loads(line)
            number = put["put"].rpartition(":")[2]
            self._ask("POST", f"/document/v1/mine/music/docid/{number}", orjson.dumps({"fields": put["fields"]}), 200)
        self.runs = 0

    def _write(self, name: str, text: str) -> None:
        for usual, other in self.replaced.items():
            text = text.replace(usual, other)
        named = _FOLDER.search(self.page.read_text())
        path = self.folder / (named[1] if named else APPLICATION) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.package[name] = text
        self.is_deployed = False

    def _deployed(self) -> Deployed:
        assert self.service is not None, "no service"
        if not self.is_deployed:
            active(self.service.deploy(self._whole_package()))
            self.is_deployed = True
        return self.service

    def _whole_package(self) -> dict[str, str | bytes]:
        names = [Path(name).stem for name in self.package if re.fullmatch(r"schemas/\w+\.sd", name)]
        documents = "".join(f'<document type="{name}" mode="index"/>' for name in names)
        services = _SERVICES.format(name=names[0], documents=documents) if names else ""
        return {"services.xml": services, **self.package}

    def _ask(self, method: str, path: str, body: str | bytes, status: int) -> None:
        service = self._deployed()
        base = service.config_url if path.startswith("/application/") else service.url
        headers = {"content-type": "application/json"} if body else {}
        if path.startswith("/search/"):  # a busy machine may need more than the half second of queries
            path += f"{'&' if '?' in path else '?'}timeout=20s"
        answered = web.request(method, base + path, content=body, headers=headers, timeout=30)
        assert answered.status_code == status, answered.text
        self.answer = answered.json()
        self.runs += 1

    def _compare_hits(self, expected: list[dict[str, Any]]) -> None:
        hits = self.answer["root"].get("children", [])
        found = [{"id": hit.get("id"), "relevance": hit["relevance"], **hit.get("fields", {})} for hit in hits]
        self._compare(expected, found, "the hits")

    def _compare(self, expected: Any, found: Any, where: str) -> None:
        """Fails where members are missing or other; lists have the same length."""
        problem = difference(expected, found, where)
        assert problem is None, f"{problem} in {orjson.dumps(found).decode()}"
        self.runs += 1

    def _addressed(self, text: str) -> str:
        """Return a program or command with the addresses of this service in place of the usual ones."""
        for usual, is_config in (("http://localhost:8080", False), ("http://localhost:19071", True)):
            if usual in text:
                text = text.replace(usual, self._deployed().config_url if is_config else self._deployed().url)
        return text

    def _run_python(self, block: Block) -> None:
        self.runs += 1
        text = self._addressed(block.text)
        if ">>>" not in text:
            exec(compile(text, str(self.page), "exec"), self.names)
            return
        test = doctest.DocTestParser().get_doctest(text, self.names, self.page.name, str(self.page), block.line)
        test.globs = self.names
        told: list[str] = []
        runner = doctest.DocTestRunner(optionflags=_DOCTEST_FLAGS)
        assert runner.run(test, out=told.append, clear_globs=False).failed == 0, "".join(told)

    def _run_commands(self, text: str) -> None:
        for example in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = re.sub(r"\\\n\s*", "", example).partition("\n")
            if "curl " in command and shutil.which("curl") is None:
                continue
            printed = self._printed(self._addressed(command))
            pattern = pattern_of(shown.rstrip("\n"))
            assert any(re.fullmatch(pattern, lines) for lines in printed), f"{command} printed {printed[0]}"
            self.runs += 1

    def _printed(self, command: str) -> tuple[str, str]:
        """Return what a command prints, with errors last and first: paperwasp's in this process, others in a shell."""
        service = self._deployed()
        addresses = {"PAPERWASP_URL": service.url, "PAPERWASP_CONFIG_URL": service.config_url}
        if command.startswith("paperwasp "):
            ran = run_command(*shlex.split(command)[1:], environment=addresses)
            out, err = ran.out, ran.err
        else:
            done = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False)
            out, err = done.stdout, done.stderr
        return without_space(out + err), without_space(err + out)


def without_space(printed: str) -> str:
    """Return lines without empty ones and without spaces at their ends."""
    return "\n".join(line.rstrip() for line in printed.splitlines() if line.strip())


def pattern_of(shown: str) -> str:
    """Return an expression for what a command prints; `…` stands for anything in a line, and alone for any lines."""
    patterns = (
        "(?:[^\n]*\n)*[^\n]*" if line == "…" else r"[^\n]*".join(map(re.escape, line.split("…")))
        for line in shown.split("\n")
    )
    return r"\n".join(patterns)


def difference(expected: Any, found: Any, where: str) -> str | None:
    """Return where what was found is not what the page shows; members that it does not show may be there."""
    if isinstance(expected, str) and "…" in expected:
        matches = expected == "…" or (isinstance(found, str) and re.fullmatch(pattern_of(expected), found))
        return None if matches else f"{where} is {found!r}, not {expected!r}"
    if isinstance(expected, dict) and isinstance(found, dict):
        parts = [(value, found.get(name), f"{where}.{name}") for name, value in expected.items()]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        parts = [(one, other, f"{where}[{n}]") for n, (one, other) in enumerate(zip(expected, found, strict=True))]
    else:
        return None if expected == found else f"{where} is {found!r}, not {expected!r}"
    return next((problem for part in parts if (problem := difference(*part))), None)


@contextmanager
def reader_of(page: Path, folder: Path) -> Iterator[Reader]:
    """Give a reader of the page with a service, which ends with them."""
    with deployed_service(folder / "paperwasp-data", allow_python_components=True) as service:
        reader = Reader(page, folder, service)
        yield reader
        for made in reader.names.values():
            if isinstance(made, paperwasp.Service):
                made.close()
