"""From a package to a model: what is collected, what is told, what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

import pytest

from paperwasp import limits
from paperwasp.application.build import build_model
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage, load_package
from paperwasp.application.preprocess import DeployProperties
from paperwasp.errors import Finding, InvalidPackage, LanguageError, Position, UnreadablePackage
from paperwasp.schema import Schema

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/>{components}</container>
  <content id="music" version="1.0"><redundancy>1</redundancy><documents>{documents}</documents></content>
</services>"""
FIELDS = "field title type string { indexing: index | summary } field year type int { indexing: attribute | summary }"


def app(
    fields: str = FIELDS,
    documents: tuple[str, ...] = ("music",),
    rest: str = "",
    components: str = "",
    files: Mapping[str, str | bytes] = MappingProxyType({}),
) -> ApplicationPackage:
    elements = "".join(f'<document type="{name}" mode="index"/>' for name in documents)
    texts = {
        "services.xml": SERVICES.format(documents=elements, components=components),
        "schemas/music.sd": f"schema music {{ document music {{ {fields} }} {rest} }}",
        **files,
    }
    return ApplicationPackage(
        {path: text if isinstance(text, bytes) else text.encode() for path, text in texts.items()}
    )


def unchecked(*_: object) -> tuple[()]:
    return ()


def model_of(package: ApplicationPackage) -> ApplicationModel:
    return build_model(package, lambda *_: ())


def problems_of(package: ApplicationPackage) -> str:
    with pytest.raises(InvalidPackage) as caught:
        model_of(package)
    return caught.value.message


def test_a_model_has_clusters_with_the_schemas_of_their_types() -> None:
    model = model_of(app(files={"schemas/artist.sd": "schema artist { document artist { } }"}))
    (cluster,) = model.content_clusters
    assert cluster.id == cluster.declared.id == "music"
    assert cluster.document_types == ("music",)
    assert cluster.schemas["music"] is model.schemas["music"]
    assert [(found.search, found.document_api) for found in model.containers] == [(True, True)]
    assert [finding.message for finding in model.findings] == ["Schema 'artist' is in no content cluster"]
    assert model.checksum == app(files={"schemas/artist.sd": "schema artist { document artist { } }"}).checksum


def test_files_that_are_no_schemas_are_not_read() -> None:
    """Vespa: FilesApplicationPackage.getSchemaFiles reads what is directly in the folder and not hidden."""
    files: dict[str, str | bytes] = {
        "schemas/README.md": "# Schemas",
        "schemas/old/music.sd": "broken",
        "schemas/._music.sd": b"\xff",
    }
    model = model_of(app(files=files))
    assert list(model.schemas) == ["music"]
    unknown = "File in application package with unknown extension: "
    assert [str(found).removeprefix(unknown) for found in model.findings] == [
        "schemas/README.md, please delete or move file to another directory.",
        "schemas/old/music.sd, please delete or move file to another directory.",
    ]


def test_all_problems_are_told_at_once() -> None:
    def check(schema: Schema, files: object) -> NoReturn:
        raise LanguageError("no such feature", Position(schema.source, 1, 2))

    overrides = "<validation-overrides><allow>x</allow></validation-overrides>"
    files: dict[str, str | bytes] = {
        "search/chains/x.xml": "<x/>",
        "hosts.xml": "<hosts>",
        "validation-overrides.xml": overrides,
        "search/query-profiles/default.xml": "<query-profile id='other'/>",
    }
    with pytest.raises(InvalidPackage) as caught:
        build_model(app(documents=("music", "artist"), files=files), check)
    told = caught.value.message.splitlines()
    assert told[0] == f"Invalid application package: {len(told) - 1} problems:"
    for part in (
        "hosts.xml, line 1, column 8: no element found",
        "search/chains/x.xml, line 1, column 1: element 'x' not allowed here; expected element 'search'",
        "schemas/music.sd, line 1, column 2: no such feature",
        "services.xml, line 3, column 111: no schema for document type 'artist' in content cluster 'music'",
        "validation-overrides.xml, line 1, column 23: element 'allow' missing required attribute 'until'",
        "search/query-profiles/default.xml, line 1, column 1",
    ):
        assert any(line.startswith(part) for line in told), part
    assert (caught.value.http_status, caught.value.deploy_code) == (412, "INVALID_APPLICATION_PACKAGE")
    assert [str(finding) for finding in caught.value.findings] == told[1:]
    assert {finding.level for finding in caught.value.findings} == {"ERROR"}
    assert Finding("no such feature", Position("schemas/music.sd", 1, 2), "ERROR") in caught.value.findings


def test_what_is_sound_is_checked_beside_broken_schemas() -> None:
    """A mistake in one schema hides no problem of another, and to name the broken one is not another problem."""
    checked: list[str] = []

    def check(schema: Schema, files: object) -> tuple[()]:
        checked.append(schema.name)
        return ()

    reference = "field by type reference<artist> { indexing: attribute }"
    files: dict[str, str | bytes] = {
        "schemas/artist.sd": "schema artist { document artist { feild name type string {} } }",
        "schemas/album.sd": f"schema album {{ document album {{ {reference} }} }}",
        "schemas/song.sd": "schema song { document song { field a type strin {} } rank-profile p {} }",
        "schemas/live.sd": "schema live inherits song { document live inherits song { } }",
        "schemas/label.sd": "schema label { document label { } constant c { type: tensor(x[1])\n file: no.json } }",
        "schemas/noise.sd": b"\xff",
    }
    with pytest.raises(InvalidPackage) as caught:
        build_model(app(documents=("music", "artist", "noise", "label", "labl"), files=files), check)
    # Those that are sound, behind those of which some is: that is checked for errors that have other causes.
    assert (set(checked[:-2]), checked[-2:]) == ({"album", "live", "song"}, ["label", "music"])
    told = [str(finding) for finding in caught.value.findings]
    for part in (
        "schemas/artist.sd, line 1, column 35: unknown element 'feild' in document; did you mean 'field'?",
        "schemas/label.sd, line 1, column 35: ",
        "schemas/noise.sd: not UTF-8",
        "schemas/song.sd, line 1, column 31: unknown type 'strin'",
        "no schema for document type 'labl' in content cluster 'music'; did you mean 'label'?",
    ):
        assert sum(part in line for line in told) == 1, (part, told)
    assert len(told) == 5


def test_one_problem_is_one_line() -> None:
    assert problems_of(app(documents=("musik",))) == (
        "Invalid application package: services.xml, line 3, column 74: no schema for document type 'musik' in content "
        "cluster 'music'; did you mean 'music'?"
    )


def test_very_many_problems_are_counted() -> None:
    documents = tuple(f"type{number}" for number in range(limits.PACKAGE_PROBLEMS + 10))
    told = problems_of(app(documents=documents)).splitlines()
    assert len(told) == limits.PACKAGE_PROBLEMS + 2
    assert told[-1] == "and 10 more"


def test_more_problems_than_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PACKAGE_FINDINGS", 60)
    documents = tuple(f"type{number}" for number in range(100))
    told = problems_of(app(documents=documents)).splitlines()
    assert told[0] == "Invalid application package: 100 problems:"
    assert told[-1] == "and 50 more"


def test_more_notes_than_are_kept_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PACKAGE_FINDINGS", 3)
    configs = "".join(f"\n<config name='a{number}'/>" for number in range(10))
    findings = model_of(app(components=configs)).findings
    assert len(findings) == 4
    assert findings[-1] == Finding("and 7 more", level="INFO")


def test_services_xml_must_be_at_the_root() -> None:
    package = ApplicationPackage({f"app/{path}": content for path, content in app().files.items()})
    assert "services.xml does not exist in application package. There are 2 files" in problems_of(package)


def test_a_schema_that_is_not_text_is_a_problem() -> None:
    package = ApplicationPackage({**app().files, "schemas/music.sd": b"schema \xff"})
    assert "schemas/music.sd: not UTF-8 at byte 7" in problems_of(package)


def test_a_model_is_of_one_deployment() -> None:
    services = SERVICES.replace("<search/>", '<search deploy:instance="beta"/>').replace(
        'version="1.0">', 'version="1.0" xmlns:deploy="vespa">', 1
    )
    text = services.format(components="", documents='<document type="music" mode="index"/>')
    package = app(files={"services.xml": text})
    beta = build_model(package, lambda *_: (), properties=DeployProperties(instance="beta"))
    assert [model.containers[0].search for model in (model_of(package), beta)] == [False, True]


def test_overrides_are_checked_for_a_day() -> None:
    text = "<validation-overrides><allow until='2026-12-01'>schema-removal</allow></validation-overrides>"
    package = app(files={"validation-overrides.xml": text})
    model = build_model(package, lambda *_: (), date(2026, 11, 20))
    assert model.overrides.allows("schema-removal", date(2026, 11, 20))
    with pytest.raises(InvalidPackage, match="too far in the future"):
        build_model(package, lambda *_: (), date(2026, 1, 1))


def test_the_files_of_the_package_are_kept_but_for_those_that_are_nobody_s() -> None:
    model = model_of(app(files={"models/a.bin": "x", "ext/components/a.jar": "y", "ext/schemas/b.sd": "not a schema"}))
    assert model.files["models/a.bin"] == b"x"
    assert not any(path.startswith("ext/") for path in model.files)


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_a_folder_is_a_package(tmp_path: Path) -> None:
    write(tmp_path, {"services.xml": "<services/>", "schemas/a.sd": "x", "schemas/sub/b.profile": "y", ".DS_Store": ""})
    assert sorted(load_package(tmp_path).files) == ["schemas/a.sd", "schemas/sub/b.profile", "services.xml"]


def test_what_the_ignore_file_names_is_left_out(tmp_path: Path) -> None:
    ignore = "# comment\n*.md\next/\n  data/*.json  \n"
    files = {"services.xml": "", ".vespaignore": ignore, "README.md": "", "sub/README.md": "", "ext/a/b": ""}
    write(tmp_path, {**files, "data/a.json": "", "data/deep/a.json": ""})
    found = set(load_package(tmp_path).files)
    assert found == {"services.xml", ".vespaignore", "sub/README.md", "data/deep/a.json"}


@pytest.mark.parametrize("where", ["src/main/application", "."])
def test_the_package_of_a_project_is_found(tmp_path: Path, where: str) -> None:
    write(tmp_path / where, {"services.xml": "<services/>"})
    assert list(load_package(tmp_path).files) == ["services.xml"]


def test_the_packaged_form_of_a_maven_project_comes_first(tmp_path: Path) -> None:
    write(tmp_path, {"pom.xml": "", "src/main/application/services.xml": "a", "target/application/services.xml": "b"})
    assert load_package(tmp_path).files["services.xml"] == b"b"


def test_an_archive_file_is_a_package(tmp_path: Path) -> None:
    (tmp_path / "app.zip").write_bytes(app().to_zip())
    assert load_package(tmp_path / "app.zip") == app()


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"services.xml": ""})
    (tmp_path / "loop").symlink_to(tmp_path)
    assert list(load_package(tmp_path).files) == ["services.xml"]


def test_where_there_is_no_package_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnreadablePackage, match=r"there is no services\.xml"):
        load_package(tmp_path)
    with pytest.raises(UnreadablePackage, match="Could not"):
        load_package(tmp_path / "nowhere")


@pytest.mark.parametrize("word", ["required", "none", "NEED"])
def test_an_authentication_of_clients_that_is_none_is_told_with_its_place(word: str) -> None:
    ssl = f"""<http><server id="s" port="8443"><ssl><private-key-file>k</private-key-file>
    <certificate-file>c</certificate-file><client-authentication>{word}</client-authentication></ssl></server></http>"""
    with pytest.raises(InvalidPackage) as raised:
        build_model(app(components=ssl, files={"k": "", "c": ""}), unchecked)
    told = [finding for finding in raised.value.findings if "client-authentication" in finding.message]
    assert [(str(finding.position), word in finding.message) for finding in told] == [
        ("services.xml, line 3, column 43", True)
    ]
