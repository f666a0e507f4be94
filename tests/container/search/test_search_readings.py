"""Whether words without white space between them are a phrase in a fieldset. Authority: IndexInfo.addFieldSetCommands,
which writes the commands of the fieldset and then that of the last field that has one, and Index.addCommand."""

from __future__ import annotations

import pytest

from paperwasp.container.search.word_indexes import indexes_of
from paperwasp.schema import parse_schemas

ON = "query-command: phrase-segmenting"
OFF = 'query-command: "phrase-segmenting false"'


@pytest.mark.parametrize(
    ("first", "second", "fieldset", "phrases"),
    [
        ("", "", "", False),
        ("", "", ON, True),
        ("", "", OFF, False),
        (ON, "", "", True),
        (ON, "", OFF, True),
        (OFF, "", ON, False),
        (ON, OFF, "", False),
        (OFF, ON, "", True),
    ],
)
def test_phrases(first: str, second: str, fieldset: str, phrases: bool) -> None:
    text = f"""
schema s {{
    document s {{
        field a type string {{
            indexing: index
            {first}
        }}
        field b type string {{
            indexing: index
            {second}
        }}
    }}
    fieldset both {{
        fields: a, b
        {fieldset}
    }}
}}
"""
    schemas = parse_schemas({"schemas/s.sd": text}).schemas
    assert indexes_of(schemas.values(), ()).reading("both").phrases == phrases
