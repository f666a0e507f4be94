"""From a package to a model: what is collected, what is refused, what may replace what."""

from __future__ import annotations

from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.application import ApplicationModel, ApplicationPackage, build_model, load_package, refused_changes
from paperwasp.errors import InvalidPackage, LanguageError, Position, UnreadablePackage
from paperwasp.schema import Schema

SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="music" version="1.0"><documents>{documents}</documents></content>
</services>"""
FIELDS = "field title type string { indexing: index | summary } field year type int { indexing: attribute | summary }"


def app(
    fields: str = FIELDS, documents: tuple[str, ...] = ("music",), rest: str = "", **files: str
) -> ApplicationPackage:
    elements = "".join(f'<document type="{name}" mode="index"/>' for name in documents)
    texts = {
        "services.xml": SERVICES.format(documents=elements),
        "schemas/music.sd": f"schema music {{ document music {{ {fields} }} {rest} }}",
        **files,
    }
    return ApplicationPackage({path: text.encode() for path, text in texts.items()})


def model_of(package: ApplicationPackage) -> ApplicationModel:
    return build_model(package, lambda _: None)


def problems_of(package: ApplicationPackage) -> str:
    with pytest.raises(InvalidPackage) as caught:
        model_of(package)
    return caught.value.message


def test_a_model_has_clusters_with_the_schemas_of_their_types() -> None:
    model = model_of(app(**{"schemas/artist.sd": "schema artist { document artist { } }"}))
    (cluster,) = model.content_clusters
    assert cluster.document_types == ("music",)
    assert cluster.schemas["music"] is model.schemas["music"]
    assert model.cluster_of("music") is cluster
    assert model.cluster_of("artist") is None
    assert model.has_search and model.has_document_api
    assert [note.message for note in model.notes] == ["Schema 'artist' is in no content cluster"]
    assert model.checksum == app(**{"schemas/artist.sd": "schema artist { document artist { } }"}).checksum


def test_all_problems_are_told_at_once() -> None:
    def check(schema: Schema) -> None:
        raise LanguageError("no such feature", Position(schema.source, 1, 2))

    package = app(documents=("music", "artist"), **{"search/chains/x.xml": "<x/>", "hosts.xml": "<hosts>"})
    with pytest.raises(InvalidPackage) as caught:
        build_model(package, check)
    assert caught.value.message.splitlines() == [
        "Invalid application package: 4 problems:",
        "schemas/music.sd, line 1, column 2: no such feature",
        "search/chains/x.xml: search chains are not supported yet",
        "hosts.xml, line 1, column 8: no element found",
        "services.xml, line 3, column 3: no schema for document type 'artist' in content cluster 'music'",
    ]
    assert (caught.value.http_status, caught.value.deploy_code) == (412, "INVALID_APPLICATION_PACKAGE")


def test_very_many_problems_are_counted() -> None:
    documents = tuple(f"type{number}" for number in range(limits.PACKAGE_PROBLEMS + 10))
    told = problems_of(app(documents=documents)).splitlines()
    assert len(told) == limits.PACKAGE_PROBLEMS + 2
    assert told[-1] == "and 10 more"


def test_services_xml_must_be_at_the_root() -> None:
    package = ApplicationPackage({f"app/{path}": content for path, content in app().files.items()})
    assert "services.xml does not exist in application package. There are 2 files" in problems_of(package)


def test_a_schema_that_is_not_text_is_a_problem() -> None:
    package = ApplicationPackage({**app().files, "schemas/music.sd": b"schema \xff"})
    assert "schemas/music.sd: not UTF-8 at byte 7" in problems_of(package)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("hosts.xml", "<hosts><host name='localhost'><alias>node1</alias></host></hosts>"),
        (
            "validation-overrides.xml",
            "<validation-overrides><allow until='2030-01-01'>x</allow></validation-overrides>",
        ),
        ("search/query-profiles/default.xml", "<query-profile id='default' type='root'/>"),
        ("search/query-profiles/types/root.xml", "<query-profile-type id='root' inherits='native'/>"),
    ],
)
def test_files_without_effect_are_noted(path: str, text: str) -> None:
    (note,) = model_of(app(**{path: text})).notes
    assert path in note.message


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        (
            "search/query-profiles/default.xml",
            "<query-profile id='a'><field name='hits'>5</field></query-profile>",
            "'field'",
        ),
        ("search/query-profiles/default.xml", "<other/>", "expected a query profile"),
        ("search/query-profiles/default.xml", "<query-profile", "not closed|unclosed"),
        ("components/x.jar", "", "Java components are not supported yet"),
        ("rules/en.sr", "", "query rules are not supported yet"),
    ],
)
def test_files_that_would_be_missed_are_refused(path: str, text: str, problem: str) -> None:
    with pytest.raises(InvalidPackage, match=problem):
        model_of(app(**{path: text}))


@pytest.mark.parametrize(
    "after",
    [
        app(),
        app(FIELDS + "field added type long { indexing: attribute }"),
        app(FIELDS.replace("}", "\nindex: enable-bm25 }", 1)),
        app(rest="rank-profile best { first-phase { expression: attribute(year) } }"),
        app(rest="fieldset default { fields: title }"),
        app(documents=("music", "artist"), **{"schemas/artist.sd": "schema artist { document artist { } }"}),
    ],
    ids=["nothing", "field", "bm25", "rank profile", "fieldset", "document type"],
)
def test_what_may_be_added(after: ApplicationPackage) -> None:
    assert refused_changes(model_of(app()), model_of(after)) == []


TITLE, YEAR = FIELDS.split("} ", 1)[0] + "}", FIELDS.split("} ", 1)[1]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (TITLE, "Field 'year' of schema 'music' is removed"),
        (FIELDS.replace("type int", "type long"), "Field 'year' of schema 'music': the type changes from int to long"),
        (FIELDS.replace("attribute | ", ""), "Field 'year' of schema 'music': its attribute is removed"),
        (FIELDS.replace("index | ", "index | attribute | "), "Field 'title' of schema 'music': its attribute is added"),
        (
            TITLE.replace("}", "\nstemming: none }") + YEAR,
            "Field 'title' of schema 'music': the settings of its index change",
        ),
    ],
)
def test_what_content_nodes_cannot_change(fields: str, problem: str) -> None:
    (told,) = refused_changes(model_of(app()), model_of(app(fields)))
    assert told.startswith(problem)


def test_documents_are_not_dropped_in_passing() -> None:
    both = app(documents=("music", "artist"), **{"schemas/artist.sd": "schema artist { document artist { } }"})
    (told,) = refused_changes(model_of(both), model_of(app()))
    assert told == "Document type 'artist' is removed from content cluster 'music', with all its documents"
    renamed = dict(app().files)
    renamed["services.xml"] = renamed["services.xml"].replace(b'content id="music"', b'content id="songs"')
    (told,) = refused_changes(model_of(app()), model_of(ApplicationPackage(renamed)))
    assert told == "Content cluster 'music' is removed, with all its documents"


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
