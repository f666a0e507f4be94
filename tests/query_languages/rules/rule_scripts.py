"""Golden scripts of semantic rules: rule files, queries, and what the rules make of these.

A script has sections, each after a line `=== what it is about`. A section is one rule file, or several, each after a
line `@@ name`; then a line `---`; then cases: `> query`, with `(any)` or `(weakAnd)` in front for another type than
`all`, and with `& name=value` behind for a parameter; below it the query that is made, in Vespa's notation, and what
else comes of it: `parameter name=value`, `trace …`, or `error …`. A case without a query shows what is told of the
files.
PAPERWASP_REWRITE_SCRIPTS=1 writes what the code says into the script instead of comparing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from paperwasp.errors import PaperwaspError
from paperwasp.query_languages.rules import RuleBases, load_rules, rewrite
from paperwasp.query_languages.rules.tree import described, root_of
from paperwasp.query_languages.yql.indexes import Indexes
from paperwasp.query_languages.yql.query_type import type_of
from paperwasp.query_languages.yql.simple import parse_simple

SCRIPTS = Path(__file__).parent / "scripts"


def check_script(name: str) -> None:
    """Compares what the code says with the script, or writes it there."""
    path = SCRIPTS / f"{name}.txt"
    script = path.read_text()
    said = "".join(_answered(script))
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS") == "1":
        path.write_text(said)
    assert said == script


def bases_of(text: str) -> tuple[RuleBases, list[str]]:
    """The rule bases in the files of a section, the first of which is `main`, and what is told of them."""
    parts = re.split(r"^@@ (\w+)\n", text, flags=re.MULTILINE)
    files = dict(zip(parts[1::2], parts[2::2], strict=True)) | ({"main": parts[0]} if parts[0].strip() else {})
    bases, found = load_rules({f"rules/{name}.sr": rules for name, rules in files.items()})
    return bases, [f"{finding.level.lower()} {finding}" for finding in found]


def _answered(script: str) -> Iterator[str]:
    head, *sections = re.split(r"^(?==== )", script, flags=re.MULTILINE)
    yield head
    for section in sections:
        rules, _, cases = section.partition("\n---\n")
        yield f"{rules}\n---\n"
        bases, told = bases_of(rules.partition("\n")[2] + "\n")
        for line in cases.splitlines():
            if line.startswith(">"):
                yield f"{line}\n"
                yield from (
                    f"{answer}\n" for answer in (told if line == ">" or not bases.by_name else _result(bases, line[2:]))
                )
            elif not line:
                yield "\n"


def _result(bases: RuleBases, case: str) -> Iterator[str]:
    text, *pairs = case.split(" & ")
    kind = found.group(1) if (found := re.match(r"\((\w+)\) ", text)) else "all"
    text = text.removeprefix(f"({kind}) ")
    parameters = dict(pair.partition("=")[::2] for pair in pairs)
    level = int(parameters.pop("tracelevel.rules", "0"))
    base = bases.named(parameters.pop("rules.rulebase", "main"))
    assert base is not None
    tree = parse_simple(text, kind, "default", Indexes(re.findall(r"(\w+):", text)))
    assert tree is not None
    try:
        made = rewrite(base, tree, parameters, type_of(kind).composite, level)
    except PaperwaspError as error:
        yield f"error {error.message}"
        return
    yield described(root_of(made.tree.canonical()))
    yield from (f"parameter {name}={value}" for name, value in made.parameters.items())
    yield from (f"trace {message}" for message in made.trace)
