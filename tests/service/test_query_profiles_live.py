"""Query profiles from deployment to query: used at once, changed by the next deployment, refused when broken."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests import web
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import FILES

DEFAULT = "search/query-profiles/default.xml"


def with_profile(content: str) -> dict[str, str]:
    return {**FILES, DEFAULT: f'<query-profile id="default">{content}</query-profile>'}


def search(service: Deployed, **parameters: str) -> httpx.Response:
    return web.get(f"{service.url}/search/", params={"trace.level": "1", **parameters}, timeout=30)


def test_a_profile_gives_the_query_and_the_next_deployment_another(tmp_path: Path) -> None:
    with deployed_service(tmp_path) as service:
        query = '<field name="yql">select * from music where year > %{since}</field><field name="since">1950</field>'
        assert service.deploy(with_profile(query)).status_code == 200
        for year in (1957, 1967):
            fields = {"fields": {"title": f"of {year}", "year": year}}
            assert web.post(f"{service.url}/document/v1/ns/music/docid/{year}", json=fields).status_code == 200
        answer = search(service).json()
        assert answer["root"]["fields"]["totalCount"] == 2
        assert answer["trace"]["children"][0] == {"message": "Using query profile 'default'"}
        assert search(service, since="1960").json()["root"]["fields"]["totalCount"] == 1
        assert search(service, queryProfile="other").json()["root"]["errors"][0]["code"] == 3

        refused = service.deploy(with_profile('<field name="x"><ref>nobody</ref></field>'))
        assert refused.status_code in (400, 412)
        assert f"{DEFAULT}, line 1, column 29: Could not find query profile 'nobody'" in refused.text
        assert search(service).json()["root"]["fields"]["totalCount"] == 2

        assert service.deploy(with_profile(query.replace("1950", "1960"))).status_code == 200
        assert search(service).json()["root"]["fields"]["totalCount"] == 1
        assert service.deploy(FILES).status_code == 200
        assert search(service).json()["root"]["errors"][0]["message"] == "No query"


VECTORS = {
    "services.xml": FILES["services.xml"],
    "schemas/music.sd": """schema music {
      document music { field v type tensor<float>(x[2]) { indexing: attribute } }
      rank-profile near {
        inputs { query(q) tensor<float>(x[2]): [1, 0] }
        first-phase { expression: sum(query(q) * attribute(v)) }
      }
    }""",
    "search/query-profiles/default.xml": """<query-profile id="default">
      <field name="ranking.profile">near</field>
    </query-profile>""",
    "search/query-profiles/up.xml": """<query-profile id="up" inherits="default">
      <field name="ranking.features.query(q)">[0, 2]</field>
    </query-profile>""",
    "search/query-profiles/typed.xml": """<query-profile id="typed" type="root" inherits="default">
      <field name="ranking.features.query(q)">[2, 0]</field>
    </query-profile>""",
    "search/query-profiles/types/root.xml": """<query-profile-type id="root" inherits="native">
      <field name="ranking.features.query(q)" type="tensor&lt;float&gt;(x[2])"/>
    </query-profile-type>""",
}


def test_the_vector_of_a_query_may_be_in_its_profile_and_is_no_default_of_the_rank_profile(tmp_path: Path) -> None:
    """The default is for expressions. Vespa: ValidateNearestNeighborSearcher, QueryValue::request_lookup."""
    nearest = "select * from music where {targetHits: 1}nearestNeighbor(v, q)"
    with deployed_service(tmp_path) as service:
        active(service.deploy(VECTORS))
        for name, vector in (("right", [3, 0]), ("up", [0, 3])):
            fields = {"fields": {"v": vector}}
            assert web.post(f"{service.url}/document/v1/ns/music/docid/{name}", json=fields).status_code == 200
        (error,) = search(service, yql=nearest).json()["root"]["errors"]
        assert error["code"] == 3
        problem = "requires a tensor rank feature named 'query(q)' but this is not present"
        assert error["message"].startswith("NEAREST_NEIGHBOR {field=v,") and error["message"].endswith(problem)
        default = search(service, yql="select * from music where true").json()["root"]["children"]
        assert [(hit["id"], hit["relevance"]) for hit in default] == [("id:ns:music::right", 3), ("id:ns:music::up", 0)]
        for profile, name in (("up", "up"), ("typed", "right")):
            first = search(service, yql=nearest, queryProfile=profile).json()["root"]["children"][0]
            assert (first["id"], first["relevance"]) == (f"id:ns:music::{name}", 6)
            given = {"queryProfile": profile, "input.query(q)": "[1, 9]"}
            assert search(service, yql=nearest, **given).json()["root"]["children"][0]["id"] == "id:ns:music::up"
