"""Query profiles from deployment to query: used at once, changed by the next deployment, refused when broken."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests import web
from tests.service.in_process import Deployed, deployed_service
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
