"""Data of a version that did not keep empty values: what the doctor says of it, and that reindexing brings words back.

`data/2026-11-24-a98cedf6.tar.zst` is what the service of that commit left when it was killed. Of its document types
`kept` and `lost` make fields of others: `all` of title and text, `marked` of tags and text, `named` of the title or
else "nameless"; `plain` makes none. Document i has the text `blue train i`, an empty title where i is even, and no tags
where it is a multiple of 3; document 9 has neither field. Ten of each are in a checkpoint; then `lost` was reindexed,
and so lost its words; then came 10 to 13 of the others, and `text: assign "blue bus 2"` and `year: assign 7`.
"""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.parse import urlsplit

from paperwasp.server.doctor.data import check_data
from tests import web
from tests.service.running import RunningService, running_service
from tests.upgrade.test_older_data import LOST_WORDS, ask, found_in, unpacked

APPLICATION = "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/default"
ALL_OF = {"kept": set(range(14)), "lost": set(range(10))}
WORDS = "default.default.default/records words"


def words_missing(data: Path) -> list[str]:
    return [finding.message for finding in check_data(data) if finding.subject == WORDS]


def reindex(service: RunningService, *types: str) -> None:
    assert web.post(f"{service.config_url}{APPLICATION}/reindex?documentType={','.join(types)}").status_code == 200
    end = threading.Event()
    for _ in range(600):
        clusters = web.get(f"{service.config_url}{APPLICATION}/reindexing").json()["clusters"]
        ready = clusters["records"]["ready"]
        if not clusters["records"]["pending"] and all(ready[name].get("state") == "successful" for name in types):
            return
        end.wait(0.05)
    raise AssertionError(f"reindexing did not end: {clusters}")


def test_words_that_were_lost_come_back(tmp_path: Path) -> None:
    data = unpacked(LOST_WORDS, tmp_path)
    kept, lost = words_missing(data)
    assert kept.startswith("10 documents and 4 puts in the log of 'kept'"), kept
    assert lost.startswith("10 documents of 'lost'"), lost
    with running_service(data) as service:
        assert urlsplit(service.url).hostname == "127.0.0.1"
        assert found_in(service, "kept", "all contains 'blue'") == ALL_OF["kept"] - {9}
        assert found_in(service, "lost", "all contains 'blue'") == {1, 3, 5, 7}
        reindex(service, "kept", "lost")
        for name, every in ALL_OF.items():
            assert found_in(service, name, "all contains 'blue'") == every
            assert found_in(service, name, "marked contains 'blue'") == every
            assert found_in(service, name, "all contains 'name3'") == {3}
            missing = {number for number in every if number % 2 == 0} | {9}
            assert found_in(service, name, "named contains 'nameless'") == missing, "what was made of null stays so"
        assert found_in(service, "kept", "all contains 'bus'") == {2}
        assert found_in(service, "kept", "year = 7") == {4}
        assert ask(service, "/document/v1/n/plain/docid/0")["fields"] == {"text": "blue train 0", "year": 1900}
        reindex(service, "kept")  # what is missing goes on to count as empty
        assert found_in(service, "kept", "all contains 'blue'") == ALL_OF["kept"]
    assert words_missing(data) == []
