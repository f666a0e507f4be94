"""The plugin of pytest, in a run of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from paperwasp.embedded.temporary import memory_directory
from tests.embedded.music import SCHEMA

TESTS = """
    import pytest

    ROW = {"id": "1", "title": "Kind of Blue", "year": 1959}


    @pytest.mark.parametrize("number", range(3))
    def test_each_begins_without_documents(paperwasp_service, number):
        assert paperwasp_service.query("blue", timeout="60s").total == 0
        paperwasp_service.feed([ROW])
        assert paperwasp_service.query("blue", timeout="60s").total == 1


    def test_a_changed_application(paperwasp_service, paperwasp_application):
        schema = (paperwasp_application / "schemas/music.sd").read_text()
        paperwasp_service.deploy({"schemas/music.sd": schema.replace("rank-profile near", "rank-profile far")})
        assert paperwasp_service.query("x", ranking="far", timeout="60s").total == 0


    def test_is_as_before_in_the_next(paperwasp_service):
        assert paperwasp_service.query("x", ranking="by_year", timeout="60s").total == 0
        with pytest.raises(Exception, match="far"):
            paperwasp_service.query("x", ranking="far", timeout="60s")


    def test_clients(vespa_app, vespa_cli, paperwasp_service, tmp_path):
        vespa_app.feed_data_point(schema="music", data_id="2", fields={"title": "Blue"})
        file = tmp_path / "documents.jsonl"
        file.write_text('{"put": "id:music:music::3", "fields": {"title": "Blue too"}}')
        vespa_cli("feed", str(file))
        assert vespa_app.query(yql="select * from music where true", timeout="60s").number_documents_retrieved == 2
        assert "Blue too" in vespa_cli("query", "select * from music where true", "timeout=60s").stdout
"""
# A container and a content cluster with the names that a package without services.xml has, so that changes fit it.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "app" / "schemas").mkdir(parents=True)
    (tmp_path / "app" / "schemas" / "music.sd").write_text(SCHEMA)
    (tmp_path / "app" / "services.xml").write_text(
        '<services version="1.0"><container id="default" version="1.0"><search/><document-api/></container>'
        '<content id="content" version="1.0"><redundancy>1</redundancy><documents><document type="music" mode="index"/>'
        '</documents><nodes><node distribution-key="0" hostalias="h"/></nodes></content></services>'
    )
    (tmp_path / "test_music.py").write_text(textwrap.dedent(TESTS))
    return tmp_path


def _pytest(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=180, check=False)


def test_fixtures(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\npaperwasp_application = app\n")
    done = _pytest(project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


@pytest.mark.parametrize("says_where", [False, True])
def test_where_documents_are(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says_where: bool) -> None:
    (project / "pytest.ini").write_text("[pytest]\npaperwasp_application = app\n")
    (project / "test_music.py").write_text(
        "def test(paperwasp_service):\n"
        "    paperwasp_service.put('1', {'title': 'Blue'})\n"
        "    (paperwasp_service.data_dir / 'content').stat()\n"
        "    open('where', 'w').write(str(paperwasp_service.data_dir))\n"
    )
    monkeypatch.delenv("TMPDIR", raising=False)
    if says_where:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
    wanted = tmp_path if says_where else memory_directory() or Path("/tmp")
    done = _pytest(project)
    where = Path((project / "where").read_text())
    assert (done.returncode, where.parent, where.exists()) == (0, wanted, False), done.stdout


def test_the_application_by_an_option_or_a_fixture(project: Path) -> None:
    done = _pytest(project, "--paperwasp-application", "app", "-k", "begins")
    assert "3 passed" in done.stdout, done.stdout
    (project / "conftest.py").write_text(
        "import pytest\nfrom pathlib import Path\n\n@pytest.fixture(scope='session')\ndef paperwasp_application():\n"
        "    return Path(__file__).parent / 'app'\n"
    )
    done = _pytest(project, "-k", "begins")
    assert "3 passed" in done.stdout, done.stdout


def test_without_an_application_the_message_says_what_to_set(project: Path) -> None:
    done = _pytest(project, "-k", "begins")
    assert done.returncode != 0
    assert "paperwasp_application" in done.stdout


def test_a_run_that_does_not_use_it_does_not_load_it(project: Path) -> None:
    (project / "test_music.py").write_text(
        "import sys\ndef test():\n    assert not [m for m in sys.modules if m.startswith('paperwasp.embedded')]\n"
    )
    done = _pytest(project)
    assert done.returncode == 0, done.stdout
