"""The files of an application package that `init` makes for rows like those of a sample; comments say why each line is
there.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from paperwasp.authoring.guessing import Column, Guess, Objects, Use

SERVICES: Final = """<?xml version="1.0" encoding="utf-8"?>
<services version="1.0">

  <!-- What listens: queries, and documents over HTTP. -->
  <container id="default" version="1.0">
    <search/>
    <!-- English by Snowball's stems: "trains" finds "train". They bring more words together than the default's. -->
    <config name="ai.vespa.opennlp.open-nlp">
      <snowballStemmingForEnglish>true</snowballStemmingForEnglish>
    </config>
    <document-api/>
    <nodes><node hostalias="node1"/></nodes>
  </container>

  <!-- Where the documents are. -->
  <content id="content" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="{schema}" mode="index"/></documents>
    <nodes><node hostalias="node1" distribution-key="0"/></nodes>
  </content>
</services>
"""
ALL: Final = "all"
"""The field that has all texts of a document."""
_INDEXING: Final[Mapping[Use, str]] = {
    Use.TEXT: "summary | index",
    Use.CATEGORY: "summary | attribute",
    Use.NUMBER: "summary | attribute",
    Use.VECTOR: "attribute | index",
    Use.PARTS: "summary",
    Use.SHOWN: "summary",
}
_CATEGORY: Final = (
    "match: word               # the whole text, not its words",
    "rank: filter              # it says which documents, not how well they match",
    "attribute: fast-search    # a tree of its values, so that filters need not look at each document",
)
_VECTOR: Final = (
    "attribute {",
    "    distance-metric: angular    # near means: in nearly the same direction",
    "}",
    "index {",
    "    hnsw {                      # a graph of neighbours; without it all vectors are compared",
    "        max-links-per-node: 16",
    "        neighbors-to-explore-at-insert: 200",
    "    }",
    "}",
)
SCHEMA: Final = """\
# Documents made of the rows of {source}: each column a field. Types are guesses from a
# sample: change what is wrong, and `paperwasp check --against` says what a change needs.
schema {schema} {{

    document {schema} {{

{fields}
    }}
"""
TEXTS: Final = """
    # All texts as one, so that a word counts by how rare it is in all of them together.
    # `|| ""` stands for a text that a document lacks: without it the document would not be found.
    field {name} type string {{
        indexing: {parts} | index
        index: enable-bm25
    }}

    # Where the words of a query are searched that name no field.
    fieldset default {{
        fields: {name}
    }}

    # Ranks where a query names no profile: by BM25, from how often words occur and how rare they are.
    rank-profile default {{
        first-phase {{
            expression: bm25({name})
        }}
    }}
"""
NEAR: Final = """
    # With ranking=near_{field} hits are ranked by how near {field} is to the query's vector, input.query(q).
    rank-profile near_{field} {{
        inputs {{
            query(q) {type}
        }}
        first-phase {{
            expression: closeness(field, {field})
        }}
    }}
"""


class NewPackage(Struct, frozen=True):
    """An application that is to be written, and how its file is fed."""

    schema: str
    """The name of the schema and document type."""
    guess: Guess
    source: str
    """The path of the file."""
    format: str | None = None
    delimiter: str | None = None
    """How the file is read, where its name and its first line do not say it."""
    serve: str = "paperwasp serve ."
    """The command that serves the application."""

    def files(self) -> Mapping[str, str]:
        """The text of each file of the package by its path."""
        return {
            "services.xml": SERVICES.format(schema=self.schema),
            f"schemas/{self.schema}.sd": self._schema_text(),
            "README.md": self._readme(),
        }

    def feed_arguments(self) -> list[str]:
        """The arguments of `paperwasp feed` for the file."""
        arguments = [self.source, "--schema", self.schema, "--id", self.guess.id]
        for column in self.guess.columns:
            if column.use is Use.LEFT_OUT:
                arguments += ["--map", f"{column.name}="]
            elif column.field != column.name or column.name == self.guess.id:
                arguments += ["--map", f"{column.name}={column.field}"]
            if column.said_type and column.use is not Use.LEFT_OUT:
                arguments += ["--field-type", f"{column.field}={column.said_type}"]
        for text in self.missing():
            arguments.append(f"--missing={text}")
        for option, value in (("--format", self.format), ("--delimiter", self.delimiter)):
            if value is not None:
                arguments += [option, value]
        return arguments

    def missing(self) -> list[str]:
        """The texts that stand for no value."""
        return sorted({text for column in self.guess.columns for text in column.missing})

    def fields(self) -> dict[str, str]:
        """Column → field, for columns that are not fields of their own name, and for an id that is a field, too; an
        empty field leaves a column out."""
        named = {column.name: "" if column.use is Use.LEFT_OUT else column.field for column in self.guess.columns}
        return {name: field for name, field in named.items() if name != field or name == self.guess.id}

    def types(self) -> dict[str, str]:
        """Field → what its texts stand for."""
        return {column.field: column.said_type for column in self.guess.columns if column.said_type}

    def _schema_text(self) -> str:
        fields = "".join(_field_text(column) for column in self.guess.columns)
        text = SCHEMA.format(source=_comment(self.source), schema=self.schema, fields=fields.rstrip("\n"))
        if parts := [f'(input {column.field} || "")' for column in self.guess.of(Use.TEXT)]:
            text += TEXTS.format(name=ALL, parts=' . " " . '.join(parts))
        vectors = self.guess.of(Use.VECTOR)
        return text + "".join(NEAR.format(field=column.field, type=column.type) for column in vectors) + "}\n"

    def _readme(self) -> str:
        lines = [
            f"# {self.schema}",
            "",
            f"An application for the rows of `{self.source}`, made by `paperwasp init`. In the folder where that ran:",
            "",
        ]
        lines += ["```sh", self.serve, f"paperwasp feed {shlex.join(self.feed_arguments())}"]
        lines += [f"paperwasp query {shlex.quote(text)}" for text in self.queries()]
        return "\n".join([*lines, "```", ""])

    def queries(self) -> list[str]:
        """Queries in YQL that show what the application can do."""
        found = []
        if self.guess.of(Use.TEXT):
            found.append(f'select * from {self.schema} where userInput("words to find")')
        numbers = [column for column in self.guess.of(Use.NUMBER) if not column.type.startswith("array")]
        if numbers:
            found.append(f"select * from {self.schema} where true order by {numbers[0].field} desc")
        groups = [column for column in self.guess.of(Use.CATEGORY) if column.type != "bool"]
        if groups:
            found.append(
                f"select * from {self.schema} where true limit 0 "
                f"| all(group({groups[0].field}) max(10) order(-count()) each(output(count())))"
            )
        return found


def _field_text(column: Column) -> str:
    said = f"{_comment(column.name)}: " if column.name != column.field else ""
    example = f", such as {_comment(column.example)}" if column.example else ""
    note = f"        # {said}{column.why}{example}: {column.use.value}.\n"
    if column.use is Use.LEFT_OUT:
        return note
    lines = [f"indexing: {_INDEXING[column.use]}"]
    if column.use is Use.CATEGORY and column.type != "bool":
        lines += _CATEGORY
    elif column.use is Use.VECTOR:
        lines += _VECTOR
    if column.objects is not None:
        lines += [f"struct-field {part} {{ indexing: attribute }}" for part in column.objects.filtered]
        note = _structs_text(column.objects) + note
    inner = "".join(f"            {line}\n" for line in lines)
    return f"{note}        field {column.field} type {column.type} {{\n{inner}        }}\n\n"


def _structs_text(objects: Objects) -> str:
    texts = []
    for name, members in objects.structs:
        inner = "".join(f"            field {member} type {type_} {{}}\n" for member, type_ in members)
        texts.append(f"        struct {name} {{\n{inner}        }}\n\n")
    return "".join(texts)


def _comment(text: str) -> str:
    """Text that ends no line of a comment."""
    return "".join(character if character.isprintable() else " " for character in text)
