"""The examples of docs/reference/feed-client.md, run against the service itself; and that importing costs little."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import web
from tests.service.music import package
from tests.service.running import RunningService, running_service

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "feed-client.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
DEPLOY = "/application/v2/tenant/default/prepareandactivate"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running_service(tmp_path_factory.mktemp("feed-client") / "data") as running:
        headers = {"Content-Type": "application/zip"}
        answer = web.post(running.config_url + DEPLOY, content=package(), headers=headers, timeout=60)
        assert answer.status_code == 200, answer.text
        yield running


def printed(service: RunningService, example: str) -> str:
    """What an example prints."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(example.replace("http://127.0.0.1:8080", service.url), "feed-client.md", "exec"), {})
    return output.getvalue()


def year_of(service: RunningService, key: int) -> int | None:
    answer = web.get(f"{service.url}/document/v1/music/music/docid/{key}").json()
    year = answer.get("fields", {}).get("year")
    assert year is None or isinstance(year, int)
    return year


def test_the_examples_of_the_page(service: RunningService) -> None:
    blocking, asynchronous, ready = EXAMPLES
    assert printed(service, blocking) == "Outcome.SUCCESS Outcome.SUCCESS\n"
    assert [year_of(service, key) for key in (1, 2)] == [1957, 1959]
    (told,) = re.findall(r"It prints:\n\n```\n(.*?)```", PAGE, re.DOTALL)
    assert printed(service, asynchronous) == told
    assert [year_of(service, key) for key in (3, 4, 5)] == [1961, None, 1965]
    assert printed(service, ready) == "100 0\n"
    assert [year_of(service, key) for key in (0, 99)] == [1900, 1999]


def test_importing_the_package_imports_no_client() -> None:
    """Names are imported when they are used."""
    code = (
        "import sys, paperwasp.client as c; "
        "heavy = {'asyncio', 'orjson', 'ssl', 'rich', 'numpy', 'paperwasp.client.feeding'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules); "
        "c.RetryStrategy; assert 'paperwasp.client.feeding.settings' in sys.modules; "
        "assert 'paperwasp.client.feeding.engine' not in sys.modules; "
        "[getattr(c, name) for name in c.__all__]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_is_not_there() -> None:
    import paperwasp.client

    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        paperwasp.client.Nothing  # noqa: B018
