"""Rank features of hits, as golden scripts: each in memory, in segments after a restart, and streamed.

A script is a schema, a line `====`, and lines of:

    modes memory segments      of the three; without such a line, all
    document {fields}          documents 1, 2, …
    query where …              what follows is about this query
    input q 2.5                or a tensor: tensor(x[2]):[1,2]
    property name value        a rank property of the query
    set name value             a rank property of the profile
    profile text               what else the profile says
    time seconds               of the query
    first expression           of the first phase; `second expression` of the second, which ranks three hits
    feature | 1 2/3 -          what it is for each document, `-` where that is no hit

A value is an expression of Python with its mathematics, `max` the greatest number; of a tensor, its labels, and its
cells where these are not all 1.
Authority: Vespa's reference of rank features; values are worked by hand from its definitions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.value import Tensor
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.search.query import Streaming
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, start
from tests.search.queries import query_of

SCRIPTS = Path(__file__).parent / "feature_scripts"
NAMES = {**vars(math), "max": sys.float_info.max}
DISTRIBUTION_KEY = 3


@dataclass
class Case:
    """One query, and what its hits have."""

    where: str
    inputs: dict[str, object] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    now: float = 0.0
    features: dict[str, list[str]] = field(default_factory=dict)

    def profile(self, name: str) -> str:
        """Its rank profile."""
        second = self.phases.get("second")
        return "\n".join(
            [
                f"rank-profile {name} inherits default {{",
                *self.lines,
                *(f'rank-properties {{ {key}: "{value}" }}' for key, value in self.settings.items()),
                f"first-phase {{ expression {{ {self.phases.get('first', '0')} }} }}",
                f"second-phase {{ rerank-count: 3\nexpression {{ {second} }} }}" if second else "",
                f"match-features {{ {' '.join(self.features)} }} }}",
            ]
        )


@dataclass
class Script:
    schema: str
    documents: list[Mapping[str, object]] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    modes: tuple[str, ...] = ("memory", "segments", "streaming")

    @classmethod
    def read(cls, path: Path) -> Script:
        schema, _, rest = path.read_text().partition("====\n")
        script = cls(schema)
        for line in rest.splitlines():
            word, _, text = line.strip().partition(" ")
            if word and not word.startswith("#"):
                script._take(word, text, line)
        return script

    def _take(self, word: str, text: str, line: str) -> None:
        name, _, value = text.partition(" ")
        match word:
            case "modes":
                self.modes = tuple(text.split())
            case "document":
                self.documents.append(orjson.loads(text))
            case "query":
                self.cases.append(Case(text))
            case "input":
                self.cases[-1].inputs[name] = parse_tensor(value) if value.startswith("tensor") else float(value)
            case "property":
                self.cases[-1].properties[name] = value
            case "set":
                self.cases[-1].settings[name] = value
            case "time":
                self.cases[-1].now = float(text)
            case "profile":
                self.cases[-1].lines.append(text)
            case "first" | "second":
                self.cases[-1].phases[word] = text
            case _:
                feature, _, values = line.rpartition(" | ")
                self.cases[-1].features[feature.strip()] = values.split()

    def schemas(self) -> dict[str, Schema]:
        """Its schema, with a rank profile for each case."""
        profiles = "\n".join(case.profile(f"p{number}") for number, case in enumerate(self.cases))
        text = self.schema.rstrip().removesuffix("}") + profiles + "\n}"
        return dict(parse_schemas({"schemas/s.sd": text}).schemas)

    def puts(self, schema: Schema) -> list[Put]:
        return [
            Put(DocumentId.parse(f"id:n:s:g=all:{number}"), read_fields(schema.document, fields))
            for number, fields in enumerate(self.documents, 1)
        ]


def node_of(path: Path, script: Script, mode: str) -> TestNode:
    schemas = script.schemas()
    modes = {"s": "streaming"} if mode == "streaming" else {}
    node = start(path, None)
    node.node.configure(1, schemas, modes, DISTRIBUTION_KEY)
    assert set(node.apply(*script.puts(schemas["s"]))) == {False}
    if mode != "segments":
        return node
    node.node.checkpoint()
    node.close()
    node = start(path, None)
    node.node.configure(1, schemas, modes, DISTRIBUTION_KEY)
    return node


def found(node: TestNode, script: Script, number: int, profiles: ServedSchemas, mode: str) -> dict[str, list[object]]:
    """feature → its value for each document; "-" for those that are no hits."""
    case = script.cases[number]
    request = query_of(
        parse_yql(f"select * from s where {case.where}").tree,
        ("s",),
        f"p{number}",
        hits=len(script.documents),
        inputs=case.inputs,
        rank_properties=case.properties,
        now_seconds=case.now,
        streaming=Streaming(group="all") if mode == "streaming" else None,
    )
    hits = search(node.node.reader.view(), request, profiles).hits
    shown = {hit.document_id.rsplit(":", 1)[1]: hit.match_features or {} for hit in hits}
    numbers = [str(number) for number in range(1, len(script.documents) + 1)]
    return {name: [shown[each][name] if each in shown else "-" for each in numbers] for name in case.features}


def as_written(value: object) -> object:
    if isinstance(value, Tensor):
        labels = [label for labels in value.labels for label in labels]
        if set(value.cells.tolist()) <= {1.0}:
            return "+".join(labels) or "none"
        return "+".join(f"{label}:{cell:.6g}" for label, cell in zip(labels, value.cells.tolist(), strict=True))
    return value


@pytest.mark.parametrize("mode", ["memory", "segments", "streaming"])
@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.txt")))
def test_features_are_as_written(name: str, mode: str, tmp_path: Path) -> None:
    script = Script.read(SCRIPTS / f"{name}.txt")
    if mode not in script.modes:
        return
    profiles = ServedSchemas()
    wrong = []
    with closing(node_of(tmp_path, script, mode)) as node:
        for number, case in enumerate(script.cases):
            for feature, values in found(node, script, number, profiles, mode).items():
                for at, (value, text) in enumerate(zip(values, case.features[feature], strict=True), 1):
                    value = as_written(value)
                    expected = text if isinstance(value, str) else eval(text, NAMES)
                    if value != expected and value != pytest.approx(expected, rel=1e-6, abs=1e-9, nan_ok=True):
                        wrong.append(f"{case.where}: {feature} of document {at}: {value}, expected {text}")
    assert not wrong, "\n".join(wrong)
