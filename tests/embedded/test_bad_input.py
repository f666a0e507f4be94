"""What a service in process refuses, and what is left where it is used wrongly: nothing."""

from __future__ import annotations

import asyncio
import ctypes
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

import paperwasp
from paperwasp.embedded.lent_loop import Closed
from paperwasp.embedded.packages import archive_of
from paperwasp.errors import InvalidInput, PaperwaspError
from paperwasp.server.roles.data_directory import DataLocked, UnusableData
from tests.children import ROOT
from tests.embedded.music import ROWS, SCHEMA

FILES = {"schemas/music.sd": SCHEMA}
NO_SUCH_SCHEMA = """<services version="1.0"><container id="c" version="1.0"><search/></container>
<content id="x" version="1.0"><redundancy>1</redundancy>
<documents><document type="nope" mode="index"/></documents></content>
</services>"""


def _zip(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (_zip(FILES), "services.xml does not exist"),
        (_zip({}), "services.xml does not exist"),
        (_zip({**FILES, "../evil.txt": "x"}), "path '../evil.txt' .* not allowed"),
        (_zip({**FILES, "/tmp/evil.txt": "x"}), "path '/tmp/evil.txt' .* not allowed"),
        ({**FILES, "../evil.txt": "x"}, "path '../evil.txt' .* not allowed"),
        (archive_of(SCHEMA)[:-10], "damaged"),
        (b"", "zip|archive"),
        ({**FILES, "services.xml": "<services"}, "services.xml, line 1"),
        ({**FILES, "services.xml": NO_SUCH_SCHEMA}, "services.xml, line 3.*no schema for document type 'nope'"),
        ({"schemas/other.sd": SCHEMA}, "schemas/other.sd, line 2.*music.sd"),
        ({"schemas/music.sd": 7}, "'schemas/music.sd' is of type int"),
        ({7: "text"}, "'7' is of type str"),
        ({}, "schemas/<name>.sd"),
        ("no schema", "no such file or folder"),
        ("a\0b", "no such file or folder"),
        (Path(__file__), "neither a zip"),
        ([SCHEMA], "this is a list"),
        (bytearray(b"PK"), "this is a bytearray"),
    ],
)
def test_a_wrong_package_is_refused_and_nothing_stays(
    application: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = threading.active_count()
    with pytest.raises(InvalidInput, match=f"(?s){message}"):
        paperwasp.Service(application)
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() <= before + 1


def test_a_directory_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in (file, "/proc/none"):
        with pytest.raises(UnusableData, match="cannot be used"):
            paperwasp.Service(SCHEMA, path)


def test_a_directory_of_another_process_is_refused(tmp_path: Path) -> None:
    program = f"import paperwasp\npaperwasp.Service({SCHEMA!r}, {str(tmp_path)!r})"
    with paperwasp.Service(SCHEMA, tmp_path) as service:
        other = _run(program)
        assert other.returncode == 1 and "DataLocked" in other.stderr and "in use" in other.stderr
        service.feed(ROWS)
        with pytest.raises(DataLocked):
            paperwasp.Service(SCHEMA, tmp_path)
    assert _run(f"{program}.close()").returncode == 0


def test_an_exception_inside_ends_the_service() -> None:
    with pytest.raises(KeyError), paperwasp.Service(SCHEMA) as service:
        raise KeyError
    assert not service.data_dir.exists()
    for use in (service.visit, service.clear, lambda: service.deploy(SCHEMA), lambda: service.query("x")):
        with pytest.raises(PaperwaspError, match="ended") as raised:
            use()
        assert isinstance(raised.value, Closed)

    async def fail() -> None:
        async with paperwasp.Service(SCHEMA) as later:
            nonlocal service
            service = later.blocking
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(fail())
    assert not service.data_dir.exists()


def test_both_forms_work_where_a_loop_runs() -> None:
    """As in a notebook, whose cells run in the loop of its kernel."""

    async def cell() -> None:
        own = asyncio.get_running_loop()
        with paperwasp.Service(SCHEMA) as service:
            assert service.feed(ROWS).ok == 3
            async with paperwasp.Service(SCHEMA) as other:
                await other.put("1", {"title": "Blue"})
                assert (service.query("blue").total, (await other.query("blue")).total) == (2, 1)
            service.deploy(SCHEMA)
            assert len(list(service.visit())) == 3
            assert asyncio.get_running_loop() is own
            service.clear()

    asyncio.run(cell())


def test_a_fork_learns_that_the_service_is_not_its_own() -> None:
    program = f"""
        import os, paperwasp, signal, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        from paperwasp.embedded.lent_loop import Closed
        service = paperwasp.Service({SCHEMA!r})
        service.feed({ROWS!r})
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            for use in (lambda: service.query("blue"), lambda: service.put("1", {{}}), service.clear, service.visit):
                try:
                    use()
                except Closed as error:
                    assert "fork" in str(error)
                else:
                    os._exit(1)
            service.close()
            try:
                paperwasp.Service({SCHEMA!r})  # its end would wait for threads that fork leaves out
            except Closed as error:
                os._exit(0 if "start processes by spawn" in str(error) else 2)
            os._exit(3)
        assert os.waitpid(child, 0)[1] == 0
        assert service.query("blue").total == 2 and service.data_dir.exists()
        service.close()
        assert not service.data_dir.exists()
    """
    done = _run(textwrap.dedent(program))
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "on_exit"), reason="only glibc has a way")
@pytest.mark.parametrize("status", [0, 7])
def test_a_fork_ends_with_its_own_status(status: int) -> None:
    """What RocksDB does at the end of a process would join threads that fork leaves out."""
    program = f"""
        import os, paperwasp, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        with paperwasp.Service({SCHEMA!r}) as service:
            child = os.fork()
            if child == 0:
                print("the fork's last words")
                sys.exit({status})
            status = os.waitpid(child, 0)[1]
            assert service.query("blue").total == 0
        print(os.waitstatus_to_exitcode(status))
    """
    done = _run(textwrap.dedent(program))
    assert (done.returncode, done.stdout) == (0, f"the fork's last words\n{status}\n"), done.stderr


def test_a_process_killed_while_it_feeds_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
        import itertools, os, paperwasp, sys
        service = paperwasp.Service({SCHEMA!r})
        child = os.fork()
        if child == 0:
            sys.stdin.read()  # outlives its parent for as long as the test wants
            os._exit(0)
        print(service.data_dir, flush=True)
        service.feed({{"id": number, "title": "blue"}} for number in itertools.count())
    """
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as child:
        assert child.stdout is not None
        directory = Path(child.stdout.readline().strip())
        assert directory.parent == tmp_path
        child.send_signal(signal.SIGKILL)
        child.wait(60)
        waited = threading.Event()
        for _ in range(1000):  # the shell that removes it may take a moment
            if not directory.exists():
                break
            waited.wait(0.02)
        assert list(tmp_path.iterdir()) == []


def _run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
