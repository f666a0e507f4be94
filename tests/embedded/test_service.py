"""A service in this process: its life, its documents, its queries, and what is refused."""

from __future__ import annotations

import asyncio
import datetime
import io
import signal
import subprocess
import sys
import textwrap
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Final

import httpx
import numpy
import orjson
import pandas
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

import paperwasp
from paperwasp.embedded.lent_loop import Closed
from paperwasp.embedded.packages import archive_of
from paperwasp.embedded.requests import RequestFailed
from paperwasp.errors import Conflict, InvalidInput, InvalidPackage, NotFound, UnreadablePackage
from paperwasp.server.roles.data_directory import DataLocked
from tests.children import ROOT
from tests.embedded.music import ROWS, SCHEMA


@pytest.fixture(scope="module")
def service() -> Iterator[paperwasp.Service]:
    with paperwasp.Service(SCHEMA) as service:
        assert service.feed(ROWS).ok == len(ROWS)
        yield service


def _ids(result: paperwasp.QueryResult) -> list[str]:
    return [hit.id.rpartition(":")[2] for hit in result]


def test_words_yql_and_parameters_search(service: paperwasp.Service) -> None:
    assert sorted(_ids(service.query("blue"))) == ["1", "2"]
    assert _ids(service.query("select * from music where title contains 'blue'", ranking="by_year")) == ["1", "2"]
    asked = {"yql": "select * from music where true", "ranking.profile": "by_year", "hits": 1, "offset": 1}
    result = service.query(asked)
    assert (_ids(result), result.total) == (["1"], 3)
    assert result.coverage["full"] is True
    assert (result[0]["year"], result[0].get("absent", 7), len(result)) == (1959, 7, 1)


def test_a_tensor_of_numpy_is_an_input(service: paperwasp.Service) -> None:
    asked = {"input.query(q)": numpy.array([0.0, 1.0], numpy.float32)}
    assert _ids(service.query("select * from music where true", ranking="near", **asked)) == ["2", "3", "1"]


def test_a_query_that_is_wrong_is_refused_with_its_status(service: paperwasp.Service) -> None:
    with pytest.raises(RequestFailed, match="artist") as failed:
        service.query("select * from music where artist contains 'davis'")
    assert failed.value.status == 400


def test_documents_are_written_read_changed_and_removed() -> None:
    with paperwasp.Service(SCHEMA) as service:
        assert service.get("1") is None
        service.put("1", {"title": "Kind of Blue", "year": 1959})
        service.put("id:other:music::1", {"title": "Another"})
        service.update("1", {"year": {"increment": 1}, "tags": ["jazz"]})
        document = service.get("1")
        assert document is not None
        assert (document.id, document["year"], document["tags"]) == ("id:music:music::1", 1960, ["jazz"])
        other = service.get("1", namespace="other", fieldSet="music:title")
        assert other is not None and dict(other.fields) == {"title": "Another"}
        service.update("2", {"year": 1}, create=True)
        with pytest.raises(RequestFailed) as failed:
            service.put("1", {"year": 2}, condition="music.year == 1")
        assert failed.value.status == 412
        assert sorted(each.id for each in service.visit()) == [
            "id:music:music::1",
            "id:music:music::2",
            "id:other:music::1",
        ]
        service.remove("1")
        assert [each.id for each in service.visit("music", selection="music.year == 1")] == ["id:music:music::2"]


def test_values_of_python_that_json_has_not_are_written_as_in_rows() -> None:
    with paperwasp.Service(SCHEMA) as service:
        moment = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
        service.put("1", {"year": moment, "tags": {"b", "a"}})
        service.put("2", {"year": datetime.date(1970, 1, 3), "place": numpy.array([1.5, 2.0], dtype=numpy.float32)})
        service.update("2", {"title": Decimal("1.50")})
        one, two = service.get("1"), service.get("2")
        assert one is not None and two is not None
        assert (one["year"], one["tags"], two["year"], two["title"]) == (86_400, ["a", "b"], 172_800, "1.50")
        with pytest.raises(InvalidInput, match="a value of type object"):
            service.put("3", {"year": object()})


def test_a_feed_takes_rows_and_operations_and_says_what_failed() -> None:
    with paperwasp.Service(SCHEMA) as service:
        reports: list[int] = []
        result = service.feed(
            [
                {"isbn": 7, "edition": 2, "name": "By columns", "note": "left out", "year": 1, "tags": None},
                {"put": "id:music:music::whole", "fields": {"title": "Whole"}},
                {"update": "id:music:music::whole", "fields": {"year": {"assign": 5}}},
                {"put": "id:music:music::gone", "fields": {}},
                {"remove": "id:music:music::gone"},
                {"isbn": 8, "edition": 1, "year": "no number"},
                {"put": "id:music:music::x", "fields": {"artist": 1}},
            ],
            id="{isbn}-{edition}",
            columns={"name": "title", "note": "", "isbn": "", "edition": ""},
            report=lambda so_far: reports.append(so_far.ok),
        )
        assert (result.ok, result.failed, reports[-1]) == (5, 2, 5)
        assert [problem.id for problem in result.problems] == ["id:music:music::8-1", "id:music:music::x"]
        assert all(problem.status == 400 and problem.message for problem in result.problems)
        found = {each.id.rpartition(":")[2]: dict(each.fields) for each in service.visit()}
        assert found == {"7-2": {"title": "By columns", "year": 1}, "whole": {"title": "Whole", "year": 5}}
        with pytest.raises(InvalidInput, match="isbn"):
            service.feed([{"title": "no id"}], id="isbn")
        with pytest.raises(InvalidInput, match="sequence"):
            service.feed(7)  # type: ignore[arg-type]


def test_frames_tables_and_files_are_fed_alike(tmp_path: Path) -> None:
    rows = [{"id": str(number), "title": f"Blue {number}", "year": number, "tags": ["a", "b"]} for number in range(300)]
    rows[7]["year"] = None
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    frame = pandas.DataFrame(rows).astype({"year": "Int64"})
    found = []
    with paperwasp.Service(SCHEMA) as service:
        for source in (rows, table, frame, tmp_path / "rows.parquet", tmp_path / "rows.jsonl"):
            assert service.feed(source).ok == 300
            found.append(service.visit().to_arrow().sort_by("id").to_pylist())
            service.clear()
    assert all(each == found[0] for each in found)
    assert {len(found[0]), found[0][0]["tags"][0]} == {300, "a"}


def test_rows_that_cannot_be_read_are_named() -> None:
    with paperwasp.Service(SCHEMA) as service:
        for source, message in (
            ([{"id": "1", "year": 1}, ["no mapping"]], "row 2: a row is a mapping"),
            ([{"id": "1", "year": 1}, {"title": "x"}], "row 2"),
            ([{"put": "id:no", "fields": {}}], "row 1: Unparseable id"),
            (pyarrow.table({"name": ["x"]}), "the columns are name"),
        ):
            with pytest.raises(InvalidInput, match=message):
                service.feed(source)  # type: ignore[arg-type]
        assert [document.id for document in service.visit()] == ["id:music:music::1"], "what came before is fed"


def test_more_documents_than_one_page_or_window_are_fed_and_visited_in_order_of_each_id() -> None:
    with paperwasp.Service(SCHEMA) as service:
        rows = [{"id": number % 3000, "year": number} for number in range(9000)]
        assert service.feed(rows).ok == 9000
        years = {each.id: each["year"] for each in service.visit("music")}
        assert years == {f"id:music:music::{number}": 6000 + number for number in range(3000)}


def test_a_package_is_a_folder_a_zip_files_or_a_schema(tmp_path: Path) -> None:
    archive = archive_of(SCHEMA)
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        assert sorted(files.namelist()) == ["schemas/music.sd", "services.xml"]
        files.extractall(tmp_path / "folder")
    (tmp_path / "package.zip").write_bytes(archive)

    class Package:
        def to_zip(self) -> io.BytesIO:
            return io.BytesIO(archive)

    for application in (tmp_path / "folder", str(tmp_path / "package.zip"), archive, Package()):
        with paperwasp.Service(application) as service:
            assert service.schemas == ("music",)


@pytest.mark.parametrize(
    ("application", "error", "message"),
    [
        ("/no/such/folder", UnreadablePackage, "/no/such/folder"),
        (b"no zip", UnreadablePackage, "zip|archive"),
        ({"readme.txt": "x"}, InvalidInput, "schemas/<name>.sd"),
        (7, InvalidInput, "int"),
        (SCHEMA.replace("type int", "type itn"), InvalidPackage, "schemas/music.sd.*line 9.*itn"),
    ],
)
def test_a_package_that_is_wrong_is_refused_with_the_place(
    application: object, error: type[Exception], message: str
) -> None:
    before = threading.active_count()
    with pytest.raises(error, match=message):
        paperwasp.Service(application)  # type: ignore[arg-type]
    assert threading.active_count() <= before + 1, "its threads have ended"


def test_a_wrong_package_leaves_a_running_application_as_it_was(service: paperwasp.Service) -> None:
    with pytest.raises(InvalidPackage):
        service.deploy(SCHEMA.replace("type int", "type itn"))
    assert len(service.query("blue")) == 2


def test_a_directory_keeps_all_and_belongs_to_one_service(tmp_path: Path) -> None:
    with paperwasp.Service(SCHEMA, tmp_path / "data") as service:
        service.feed(ROWS)
        with pytest.raises(DataLocked, match="in use"):
            paperwasp.Service(SCHEMA, tmp_path / "data")
        assert len(service.query("blue")) == 2, "the first one goes on"
    with paperwasp.Service(data_dir=tmp_path / "data") as service:
        assert sorted(_ids(service.query("blue"))) == ["1", "2"]


def test_a_temporary_directory_goes_with_the_service() -> None:
    with paperwasp.Service(SCHEMA) as service:
        directory = service.data_dir
        assert (directory / "lock").exists()
    assert not directory.exists()
    service.close()
    for use in (lambda: service.query("blue"), lambda: service.feed([]), lambda: service.get("1")):
        with pytest.raises(Closed, match="ended"):
            use()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_the_process_is_killed(number: signal.Signals) -> None:
    program = f"""
        import faulthandler, paperwasp, signal, sys
        faulthandler.register(signal.SIGUSR1)
        for number in (signal.SIGTERM, signal.SIGHUP):  # what runs behind a shell may ignore some
            signal.signal(number, signal.SIG_DFL)
        service = paperwasp.Service({SCHEMA!r})
        print(service.data_dir, flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as child:
        assert child.stdout is not None
        directory = Path(child.stdout.readline().strip())
        assert directory.is_dir()
        child.send_signal(number)
        _wait_for_end(child)
    waited = threading.Event()
    for _ in range(500):  # the shell that removes it may take a moment
        if not directory.exists():
            break
        waited.wait(0.02)
    assert not directory.exists()


def _wait_for_end(child: subprocess.Popen[str]) -> None:
    """Waits, and shows where its threads are if it does not end."""
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            child.wait(2)
        child.kill()
        assert child.stderr is not None
        pytest.fail(f"it did not end:\n{child.stderr.read()}")


def test_no_port_is_open_unless_asked_for() -> None:
    before = _listening()
    with paperwasp.Service(SCHEMA) as service:
        assert _listening() == before
        with pytest.raises(Conflict, match="port=0"):
            _ = service.url
    with paperwasp.Service(SCHEMA, port=0) as service:
        service.feed(ROWS)
        answer = httpx.get(
            f"{service.url}/search/", params={"query": "blue", "yql": "select * from sources * where userQuery()"}
        )
        assert answer.json()["root"]["fields"]["totalCount"] == 2
        assert httpx.get(f"{service.config_url}/state/v1/health").json()["status"]["code"] == "up"


def _listening() -> set[str]:
    """This process's sockets that listen, by their inodes. Other tests may have some."""
    own = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            own.add(str(link.readlink()).removeprefix("socket:[").removesuffix("]"))
        except OSError:
            continue
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/self/net/{name}").read_text().splitlines()[1:]
    ]
    return {line[9] for line in lines if line[3] == "0A" and line[9] in own}


def test_threads_and_coroutines_share_a_service(service: paperwasp.Service) -> None:
    found: list[int] = []

    def ask() -> None:
        found.extend(service.query("blue", hits=number % 5 + 1).total for number in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]

    async def ask_too() -> int:
        face = await service.__aenter__()
        results = await asyncio.gather(*(face.query("blue", hits=number % 3) for number in range(50)))
        assert (await face.get("1")) is not None
        assert [each.id async for each in face.visit()]
        return sum(result.total for result in results)

    for thread in threads:
        thread.start()
    assert asyncio.run(ask_too()) == 100
    for thread in threads:
        thread.join()
    assert found == [2] * 400


def test_coroutines_have_all_methods() -> None:
    async def run() -> None:
        async with paperwasp.Service() as service:
            with pytest.raises(NotFound, match="No application"):
                await service.query("blue")
            await service.deploy(SCHEMA)
            await service.put("1", {"title": "Blue"})
            await service.update("1", {"year": 3})
            document = await service.get("1")
            assert document is not None and document["year"] == 3
            assert (await service.feed(ROWS)).ok == 3
            await service.remove("2")
            assert (await service.query("blue")).total == 1
            with pytest.raises(RequestFailed):
                await service.query("select * from music where")
        with pytest.raises(Closed):
            await service.query("blue")

    asyncio.run(run())


def test_an_explanation_shows_each_phase(service: paperwasp.Service) -> None:
    shown = str(service.query("blue", ranking="by_year").explain())
    assert "bm25(title) + attribute(year)" in shown and "1959" in shown


def test_an_application_is_forgotten() -> None:
    with paperwasp.Service(SCHEMA, port=0) as service:
        port = service.port
        service.feed(ROWS)
        service.undeploy()
        with pytest.raises(NotFound):
            service.query("blue")
        with pytest.raises(NotFound):
            service.undeploy()
        service.deploy(SCHEMA.replace("music", "books"))
        assert (service.schemas, service.port) == (("books",), port)
        assert service.query("blue").total == 0


@pytest.mark.parametrize("ports", [{"port": 65_536}, {"port": -1}, {"config_port": 99_999}])
def test_what_is_no_port_is_refused(ports: dict[str, int]) -> None:
    (number,) = ports.values()
    with pytest.raises(InvalidInput, match=f"A port is a number from 0 to 65535, and here is {number}"):
        paperwasp.Service(**ports)  # type: ignore[arg-type]


def test_a_second_service_of_this_process_cannot_have_the_same_directory(tmp_path: Path) -> None:
    with (
        paperwasp.Service(SCHEMA, data_dir=tmp_path),
        pytest.raises(DataLocked, match="in use by another service of this process: close that one, or use another"),
    ):
        paperwasp.Service(SCHEMA, data_dir=tmp_path)


def test_a_service_shows_where_it_is(tmp_path: Path) -> None:
    with paperwasp.Service(data_dir=tmp_path) as service:
        assert repr(service) == f"<paperwasp.Service in {tmp_path}>"
    assert repr(service) == f"<paperwasp.Service that has ended {tmp_path}>"


def test_hits_and_documents_are_made_into_dictionaries(service: paperwasp.Service) -> None:
    hit = service.query("select title, year from music where title contains 'train'")[0]
    document = service.get("1")
    assert document is not None
    assert ("title" in hit, "absent" in hit, list(hit)) == (True, False, list(hit.fields))
    assert ("title" in document, "absent" in document, list(document)) == (True, False, list(document.fields))
    assert (dict(hit), dict(document)) == (hit.fields, document.fields)
    assert (document.get("title"), document.get("absent", 7)) == (document["title"], 7)


def test_a_schema_file_is_an_application(tmp_path: Path) -> None:
    (tmp_path / "music.sd").write_text(SCHEMA)
    for path in (tmp_path / "music.sd", str(tmp_path / "music.sd")):
        with paperwasp.Service(path) as service:
            assert service.schemas == ("music",)


def test_an_index_of_pandas_without_a_name_is_not_a_field(service: paperwasp.Service, tmp_path: Path) -> None:
    frame = pandas.DataFrame({"id": ["i1", "i2", "i3", "i4"], "title": ["Red", "Green", "Red", "Red"]})
    some = frame[frame["title"] == "Red"]
    some.to_parquet(tmp_path / "some.parquet")
    pyarrow.feather.write_feather(some, str(tmp_path / "some.arrow"), compression="uncompressed")
    for source in (some, tmp_path / "some.parquet", tmp_path / "some.arrow"):
        assert service.feed(source).ok == 3
        assert service.feed([{"remove": name} for name in ("i1", "i3", "i4")]).ok == 3


def test_categories_of_polars_are_texts(service: paperwasp.Service) -> None:
    texts = pyarrow.array(["Red", "Green"], pyarrow.string_view())
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([1, None, 0], pyarrow.uint32()), texts)
    assert service.feed(pyarrow.table({"id": ["c1", "c2", "c3"], "title": column})).ok == 3
    titles = [document.get("title") for name in ("c1", "c2", "c3") if (document := service.get(name)) is not None]
    assert titles == ["Green", None, "Red"]
    for name in ("c1", "c2", "c3"):
        service.remove(name)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ([{"title": "x"}], {}, "row 1: say with id= which column or template makes the id, and the columns are title"),
        ([{"id": "1"}], {"id": "isbn"}, "row 1: id= names 'isbn', and the columns are id"),
        ([{}], {}, "row 1: say with id= which column or template makes the id, and there are no columns"),
        ({"id": "1", "title": "x"}, {}, "this is one dict: put a single row into a list"),
    ],
)
def test_what_a_feed_lacks_is_said_in_words_of_python(
    service: paperwasp.Service, source: object, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        service.feed(source, **options)  # type: ignore[arg-type]


SERVICES: Final = """<services version="1.0">{}
  <content id="c" version="1.0"><redundancy>1</redundancy><documents><document type="music" mode="index"/></documents>
  <nodes><node hostalias="n" distribution-key="0"/></nodes></content></services>"""
ROW: Final = {"id": "1", "title": "x"}


def test_a_package_without_an_interface_is_told_what_to_add() -> None:
    searching = '<container id="s" version="1.0"><search/></container>'
    feeding = '<container id="f" version="1.0"><document-api/></container>'
    schema = {"schemas/music.sd": "schema music { document music { field title type string { indexing: index } } }"}
    with paperwasp.Service({"services.xml": SERVICES.format(searching), **schema}) as service:
        lacks = r"No container has <document-api/>: add it to <container> 's' in services\.xml"
        for call in (
            lambda: service.feed([ROW]),
            lambda: service.feed([]),
            lambda: service.put("1", {"title": "x"}),
            lambda: service.get("1"),
            lambda: list(service.visit()),
        ):
            with pytest.raises(InvalidInput, match=lacks):
                call()
        # Each call goes to the cluster that has its interface.
        service.deploy({"services.xml": SERVICES.format(searching + feeding), **schema})
        assert (service.feed([ROW]).ok, service.query("title:x").total) == (1, 1)
        service.deploy({"services.xml": SERVICES.format(feeding), **schema})
        with pytest.raises(InvalidInput, match=r"No container has <search/>: add it to <container> 'f'"):
            service.query("x")
