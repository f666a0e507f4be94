"""The application of these tests, and its documents."""

from __future__ import annotations

from typing import Any, Final

SCHEMA: Final = """
schema music {
    document music {
        field title type string {
            indexing: summary | index
            index: enable-bm25
            bolding: on
        }
        field year type int {
            indexing: summary | attribute
        }
        field tags type array<string> {
            indexing: summary | attribute
        }
        field place type tensor<float>(x[2]) {
            indexing: summary | attribute
        }
    }
    fieldset default {
        fields: title
    }
    rank-profile by_year {
        first-phase {
            expression: bm25(title) + attribute(year)
        }
    }
    rank-profile near {
        inputs {
            query(q) tensor<float>(x[2])
        }
        first-phase {
            expression: sum(query(q) * attribute(place))
        }
    }
}
"""
ROWS: Final[list[dict[str, Any]]] = [
    {"id": "1", "title": "Kind of Blue", "year": 1959, "tags": ["jazz", "modal"], "place": [1.0, 0.0]},
    {"id": "2", "title": "Blue Train", "year": 1957, "tags": ["jazz"], "place": [0.0, 1.0]},
    {"id": "3", "title": "Revolver", "year": 1966, "tags": ["pop"], "place": [0.5, 0.5]},
]
