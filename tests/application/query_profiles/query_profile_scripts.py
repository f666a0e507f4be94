"""Golden scripts of query profiles: files of a package, what is told about them, and what requests get.

Cases are parted by lines `====`. A case has files, each after a line `@ path` below search/query-profiles, and
requests, `> profile name=value …`; then a line `---`, the findings, and for each request its values or its error.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the code says into the script instead of comparing.
"""

from __future__ import annotations

import os
from pathlib import Path

from paperwasp.application.query_profiles import FOLDER, QueryProfiles, parse_query_profiles
from paperwasp.errors import PaperwaspError

SCRIPTS = Path(__file__).parent / "scripts"
_BREAK = "\n====\n"


def run(path: Path) -> None:
    """Compares the answers of a script's cases with what it says, or rewrites it."""
    head, *cases = path.read_text().rstrip("\n").split(_BREAK)
    parts = [(case + "\n").partition("\n---\n") for case in cases]
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        path.write_text(_BREAK.join([head, *(f"{text.strip()}\n---\n{answer(text)}" for text, _, _ in parts)]) + "\n")
        return
    for text, _, expected in parts:
        assert answer(text) == expected.rstrip("\n"), f"{path.name}:\n{text}"


def answer(text: str) -> str:
    """What is told about the files of a case, then the values that each of its requests gets."""
    files: dict[str, list[str]] = {}
    requests: list[str] = []
    lines: list[str] = []
    for line in text.strip().splitlines():
        if line.startswith("@ "):
            lines = files[line[2:]] = []
        elif line.startswith("> "):
            requests.append(line)
        else:
            lines.append(line)
    by_path = {f"{FOLDER}/{path}.xml": "\n".join(lines).encode() for path, lines in files.items()}
    profiles, findings = parse_query_profiles(by_path)
    said = [f"{finding.level} {finding}".replace(f"{FOLDER}/", "") for finding in findings]
    return "\n".join([*said, *(line for request in requests for line in got(profiles, request))])


def got(profiles: QueryProfiles, request: str) -> list[str]:
    """The values of one request, with the request in front."""
    _, name, *pairs = request.split(" ")
    given = dict(pair.split("=", 1) for pair in pairs)
    profile = profiles.compile("" if name == "*" else name, given)
    if profile is None:
        return [request, "  not found"]
    try:
        values = profiles.values(profile, given, given)
    except PaperwaspError as error:
        return [request, f"  {error.search_code}: {error.message}"]
    return [f"{request} · {profile}", *(f"  {name} = {value}" for name, value in values.items())]
