"""Golden scripts of indexing: what scripts make of documents.

Cases are parted by blank lines; lines that begin with `# ` are comments. A case is `<type>: <script>`, the script of
the field `out` of that type outside the document below, which may go on in indented lines; then, for each document, a
line
`<document as JSON> → <value as JSON>`, `→ nothing` where the field is not set, or `→ ! <reason>` where the document is
refused. In the place of documents, `! <message>` is what the deployment tells.

Scripts of a file `embed.txt` have the embedders `EMBEDDERS`, others have none.

The clock stands at 1700000000 seconds; `random` gives the highest number that it may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from paperwasp.base.env import Environment
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.shown import render_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import InvalidInput, LanguageError
from paperwasp.indexing import Processor, check_scripts
from paperwasp.indexing.compiler import compile_scripts
from paperwasp.indexing.components import BUILT_IN, Components, Context
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema

SCRIPTS = Path(__file__).parent / "scripts"
ID = DocumentId.parse("id:mynamespace:music:g=jazz:kind/of:blue")
NOW = Environment(time_ns=lambda: 1_700_000_000 * 10**9 + 5)
SCHEMA = """
schema music {{
    document music {{
        struct person {{ field name type string {{}} field age type int {{}} field home type position {{}} }}
        field a type string {{ }}
        field b type string {{ }}
        field u type uri {{ }}
        field y type byte {{ }}
        field n type int {{ }}
        field l type long {{ }}
        field f type float {{ }}
        field d type double {{ }}
        field t type bool {{ }}
        field r type raw {{ }}
        field p type position {{ }}
        field s type person {{ }}
        field texts type array<string> {{ }}
        field more type array<string> {{ }}
        field numbers type array<int> {{ }}
        field doubles type array<double> {{ }}
        field places type array<position> {{ }}
        field people type array<person> {{ }}
        field weights type weightedset<string> {{ }}
        field counts type weightedset<int> {{ }}
        field words type map<string, string> {{ }}
        field squares type map<int, int> {{ }}
        field dense type tensor<float>(x[9]) {{ }}
        field mixed type tensor(k{{}},x[8]) {{ }}
    }}
    field out type {type} {{
        indexing {{
            {script}
        }}
    }}
}}
"""


class Lengths:
    """Embeds a text as its length and that of the first argument: two cells. Refuses "bad"."""

    def check_type(self, type: TensorType, context: Context) -> None:
        if type.shape != (2,):
            raise ValueError(f"{type} is not two cells")

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        self.check_type(type, context)
        if "bad" in texts:
            raise ValueError("a bad text")
        second = len(context.arguments[0]) if context.arguments else 0
        cells = [np.array([[len(text), second]], np.float32) for text in texts]
        return [Tensor(type, ((),), cell) for cell in cells]


class Words:
    """Embeds a text as its words: one at a label each, with the word's length and its place from 1."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Nothing."""

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        return [self._tensor(text.split(), type) for text in texts]

    def _tensor(self, words: list[str], type: TensorType) -> Tensor:
        (_,) = type.mapped
        pairs = [[len(word), place] for place, word in enumerate(words, 1)]
        cells = (
            np.array(pairs, np.float32).reshape(-1, 2)
            if type.indexed
            else np.array([each[0] for each in pairs], np.float32)
        )
        return Tensor(type, tuple((word,) for word in words), cells)


EMBEDDERS = Components({"words": Words(), "lengths": Lengths()}, BUILT_IN.chunkers)


def schema_of(type_: str, script: str) -> Schema:
    """Errors: InvalidSchemas for what is wrong with it before types."""
    schema: Schema = parse_schemas({"schemas/music.sd": SCHEMA.format(type=type_, script=script)}).schemas["music"]
    return schema


def processor(schema: Schema, components: Components = BUILT_IN) -> Processor:
    """Of scripts that compile. Errors: the first LanguageError."""
    compiled = []
    for script in compile_scripts(schema, components):
        if isinstance(script, LanguageError):
            raise script
        compiled.append(script)
    return Processor(compiled, NOW, lambda bound: bound - 1)


def cases(script: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Type, script, and the lines below."""
    lines = [line for line in script.read_text().splitlines() if not line.startswith("# ") and line != "#"]
    for block in "\n".join(lines).split("\n\n"):
        head, *rest = block.strip().split("\n") if block.strip() else [""]
        if head:
            while rest and rest[0].startswith("    "):
                head += "\n" + rest.pop(0)
            type_, _, text = head.partition(": ")
            yield type_, text, rest


def run(path: Path) -> None:
    """Compares all answers with what the script says."""
    differences: list[str] = []
    components = EMBEDDERS if path.stem == "embed" else BUILT_IN
    for type_, script, lines in cases(path):
        for line in lines:
            if line[0] == "!":
                found, expected = deployment(type_, script, components), line
            else:
                found, expected = _asked(type_, script, line, components)
            if found != expected:
                differences.append(f"{type_}: {script}\n{line}\nbut: {found}\n")
    assert not differences, "\n".join(differences)


def _asked(type_: str, script: str, line: str, components: Components) -> tuple[str, str]:
    """What a document gives, and what it should."""
    document, _, expected = line.partition(" → ")
    wanted = expected if expected == "nothing" or expected[0] == "!" else json_text(orjson.loads(expected))
    return answer(schema_of(type_, script), orjson.loads(document), components), wanted


def deployment(type_: str, script: str, components: Components = BUILT_IN) -> str:
    """What the deployment tells, without places and the names that all cases have."""
    try:
        told = list(check_scripts(schema_of(type_, script), components))
    except InvalidInput as error:
        return "! " + error.message.partition(": ")[2]
    return "! " + "; ".join(finding.message.removeprefix("For schema 'music', field 'out': ") for finding in told)


def answer(schema: Schema, document: Mapping[str, Any], components: Components) -> str:
    values = DocumentReader(schema.document).read_put(document)
    if told := [str(finding) for finding in check_scripts(schema, components) if finding.level == "ERROR"]:
        return "; ".join(told)
    try:
        made = processor(schema, components).derived(ID, values)
    except InvalidInput as error:
        prefix = f"In document '{ID.text}': Could not index field 'out': "
        assert error.message.startswith(prefix)
        return f"! {error.message.removeprefix(prefix)}"
    if "out" not in made:
        return "nothing"
    render = render_of(schema.fields["out"].type)
    return json_text(made["out"] if render is None else render(made["out"]))


def json_text(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS).decode()
