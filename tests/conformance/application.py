"""The applications that the tests of the specification deploy, and the documents that they search."""

from __future__ import annotations

from typing import Any, Final

from tests.application.model_evaluation.packages import files
from tests.ranking.onnx.onnx_models import product

SERVICES: Final = """<services version="1.0">
  <container id="default" version="1.0">
    <search/>
    <document-api/>
    <model-evaluation/>
    <nodes><node hostalias="node1"/></nodes>
  </container>
  <content id="records" version="1.0">
    <redundancy>1</redundancy>
    <documents>
      <document type="music" mode="index"/>
      <document type="note" mode="index"/>
      <document type="label" mode="index" global="true"/>
    </documents>
    <nodes><node distribution-key="0" hostalias="node1"/></nodes>
  </content>
  <content id="letters" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="mail" mode="streaming"/></documents>
    <nodes><node distribution-key="0" hostalias="node1"/></nodes>
  </content>
</services>
"""
MUSIC: Final = """schema music {
  document music {
    field title type string {
      indexing: summary | index
      index: enable-bm25
      bolding: on
    }
    field artist type string { indexing: summary | index | attribute }
    field story type string {
      indexing: summary | index
      summary: dynamic
    }
    field year type int { indexing: summary | attribute }
    field price type float { indexing: summary | attribute }
    field released type long { indexing: attribute }
    field place type position { indexing: summary | attribute }
    field vector type tensor<float>(d0[4]) {
      indexing: summary | attribute | index
      attribute { distance-metric: angular }
    }
  }
  fieldset default { fields: title, artist }
  document-summary short { summary title {} }
  rank-profile default { first-phase { expression: bm25(title) } }
  rank-profile cheap inherits default {
    first-phase { expression: attribute(price) }
    second-phase {
      expression: attribute(year)
      rerank-count: 2
    }
  }
  rank-profile added {
    inputs { query(bonus) double: 1 }
    function twice() { expression: 2 * attribute(price) }
    first-phase { expression: twice + query(bonus) }
  }
  rank-profile near {
    inputs { query(q) tensor<float>(d0[4]) }
    first-phase { expression: closeness(field, vector) }
  }
  rank-profile texts { first-phase { expression: fieldMatch(title).completeness + 10 * freshness(released) } }
  rank-profile network {
    inputs { query(q) tensor<float>(d0[4]) }
    onnx-model layer {
      file: models/layer.onnx
      input x: row
    }
    function row() { expression: tensor<float>(d0[1],d1[4])(query(q){d0:(d1)}) }
    first-phase { expression: sum(onnx(layer).y) }
  }
}
"""
NOTE: Final = """schema note {
  document note {
    field text type string { indexing: summary | index }
    field stars type int { indexing: summary | attribute }
  }
  fieldset default { fields: text }
}
"""
LABEL: Final = """schema label {
  document label { field name type string { indexing: summary | attribute } }
}
"""
MAIL: Final = """schema mail {
  document mail {
    field subject type string { indexing: summary | index }
    field size type int { indexing: summary | attribute }
  }
}
"""
PROFILE: Final = """<query-profile id="few">
  <field name="hits">2</field>
  <field name="ranking.profile">cheap</field>
</query-profile>
"""
MANY: Final = """<query-profile id="many">
  <field name="maxHits">500</field>
  <field name="maxOffset">2000</field>
</query-profile>
"""
FILES: Final[dict[str, str | bytes]] = {
    "services.xml": SERVICES,
    "schemas/music.sd": MUSIC,
    "schemas/note.sd": NOTE,
    "schemas/label.sd": LABEL,
    "schemas/mail.sd": MAIL,
    "search/query-profiles/few.xml": PROFILE,
    "search/query-profiles/many.xml": MANY,
    **files(),
    "models/layer.onnx": product(batch=1),
}
COPIES: Final[dict[str, str | bytes]] = {
    "services.xml": """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="first" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="note" mode="index"/></documents>
  </content>
  <content id="second" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="note" mode="index"/></documents>
  </content>
</services>
""",
    "schemas/note.sd": NOTE,
}
"""Two content clusters with one document type."""

ALBUMS: Final[dict[str, dict[str, Any]]] = {
    "1": {
        "title": "Blue Train",
        "artist": "Coltrane",
        "story": "A long session of a hard bop quintet in autumn, and the only one that he led for this label.",
        "year": 1957,
        "price": 9.5,
        "released": 1_000_000_000,
        "place": {"lat": 40.71, "lng": -74.01},
        "vector": [1, 0, 0, 0],
    },
    "2": {
        "title": "Kind of Blue",
        "artist": "Davis",
        "year": 1959,
        "price": 12,
        "released": 1_000_000_000,
        "place": {"lat": 40.75, "lng": -73.98},
        "vector": [0, 1, 0, 0],
    },
    "3": {"title": "Giant Steps", "artist": "Coltrane", "year": 1960, "price": 8, "vector": [0.6, 0.8, 0, 0]},
    "4": {"title": "A Love Supreme", "artist": "Coltrane", "year": 1965, "price": 11, "vector": [0.8, 0.6, 0, 0]},
    "5": {
        "title": "Time Out",
        "artist": "Brubeck",
        "year": 1959,
        "price": 10,
        "place": {"lat": 59.91, "lng": 10.75},
        "vector": [0, 0, 1, 0],
    },
}
"""The documents `id:albums:music::1` to 5: all that there are of the type."""
