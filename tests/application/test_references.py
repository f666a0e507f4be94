"""What the parts of a package say of each other: document types, parents, files of models and constants."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from paperwasp.application.build import SchemaCheck, build_model
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage
from paperwasp.errors import InvalidPackage
from paperwasp.server.schema_check import check_schema
from tests.components.embedders.tiny_models import tiny_bert

CONSTANT = b'{"cells": [{"address": {"x": "0"}, "value": 1.0}, {"address": {"x": "1"}, "value": 2.0}]}'
COMPONENT = """<component id="e" type="hugging-face-embedder">
  <transformer-model path="models/e.onnx"/><tokenizer-model model-id="nowhere"/>
</component>"""


MODEL = tiny_bert()


def package(
    documents: str, components: str = "", files: Mapping[str, str | bytes] = MappingProxyType({})
) -> ApplicationPackage:
    services = f"""<services version="1.0">
      <container id="default" version="1.0"><search/>{components}</container>
      <content id="music" version="1.0"><redundancy>1</redundancy><documents>{documents}</documents></content>
    </services>"""
    texts = {"services.xml": services, **files}
    return ApplicationPackage(
        {path: text if isinstance(text, bytes) else text.encode() for path, text in texts.items()}
    )


def model_of(found: ApplicationPackage, check: SchemaCheck = lambda *_: ()) -> ApplicationModel:
    return build_model(found, check)


def problems_of(found: ApplicationPackage, check: SchemaCheck = lambda *_: ()) -> str:
    with pytest.raises(InvalidPackage) as caught:
        model_of(found, check)
    return caught.value.message


MUSIC = '<document type="music" mode="index"/>'
ARTIST = '<document type="artist" mode="index" global="{is_global}"/>'
CHILD = """schema music {
  document music { field artist type reference<artist> { indexing: attribute } }
  import field artist.name as artist_name { }
}"""
PARENT = "schema artist { document artist { field name type string { indexing: attribute } } }"


def test_parents_are_global_documents_of_the_same_cluster() -> None:
    files: dict[str, str | bytes] = {"schemas/music.sd": CHILD, "schemas/artist.sd": PARENT}
    model = model_of(package(MUSIC + ARTIST.format(is_global="true"), files=files))
    assert model.schemas["music"].fields["artist_name"].imported is not None
    told = problems_of(package(MUSIC + ARTIST.format(is_global="false"), files=files))
    assert "schemas/music.sd, line 2" in told
    assert "refers to document type 'artist', which is not global in content cluster 'music'" in told
    told = problems_of(package(MUSIC, files=files))
    assert "refers to document type 'artist', which is not in content cluster 'music'" in told


def schema(rest: str) -> str:
    return f"schema music {{ document music {{ field a type int {{ indexing: attribute }} }} {rest} }}"


def with_constant(**files: bytes) -> ApplicationPackage:
    rest = "constant c { file: constants/c.json type: tensor<float>(x[2]) }"
    return package(MUSIC, files={"schemas/music.sd": schema(rest), **files})


def test_the_file_of_a_constant_must_hold_its_tensor() -> None:
    assert model_of(with_constant(**{"constants/c.json": CONSTANT})).schemas["music"].constants
    told = problems_of(with_constant(**{"constants/d.json": CONSTANT}))
    assert "constant 'c': file 'constants/c.json' is not in the application package" in told
    assert "did you mean 'constants/d.json'?" in told
    assert "constant 'c'" in problems_of(with_constant(**{"constants/c.json": b"{"}))
    assert "constant 'c'" in problems_of(with_constant(**{"constants/c.json": CONSTANT.replace(b'"x"', b'"y"')}))


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (
            "constant c { uri: https://h/c.json type: tensor(x[2]) }",
            "constant 'c': uri 'https://h/c.json': files are not",
        ),
        (
            "onnx-model m { uri: https://h/m.onnx }",
            "onnx-model 'm': uri 'https://h/m.onnx': files are not fetched: put",
        ),
        (
            "rank-profile p { onnx-model m { uri: http://h/m } }",
            "onnx-model 'm': uri 'http://h/m': files are not fetched",
        ),
    ],
)
def test_nothing_is_fetched(rest: str, told: str) -> None:
    found = problems_of(package(MUSIC, files={"schemas/music.sd": schema(rest)}))
    assert told in found
    assert "schemas/music.sd, line 1, column" in found


def test_what_is_in_ext_cannot_be_referred_to() -> None:
    rest = "constant c { file: ext/c.json type: tensor<float>(x[2]) }"
    found = package(MUSIC, files={"schemas/music.sd": schema(rest), "ext/c.json": CONSTANT})
    assert "'ext/c.json' is not in the application package" in problems_of(found)


def test_the_file_of_an_onnx_model_must_be_there() -> None:
    rest = "rank-profile p { onnx-model m { file: models/m.onnx } }"
    assert "onnx-model 'm': file 'models/m.onnx' is not" in problems_of(
        package(MUSIC, files={"schemas/music.sd": schema(rest)})
    )
    assert model_of(package(MUSIC, files={"schemas/music.sd": schema(rest), "models/m.onnx": b"x"}))


def test_the_files_of_embedders_must_be_there() -> None:
    files: dict[str, str | bytes] = {"schemas/music.sd": schema("")}
    assert "component 'e': file 'models/e.onnx' is not" in problems_of(package(MUSIC, COMPONENT, files=files))
    damaged = package(MUSIC, COMPONENT, {**files, "models/e.onnx": b""})
    assert "component 'e': models/e.onnx is no ONNX model: it has no graph" in problems_of(damaged)
    model = model_of(package(MUSIC, COMPONENT, {**files, "models/e.onnx": MODEL}))
    assert model.containers[0].components[0].settings["transformer-model@path"] == "models/e.onnx"
    assert "tokenizer-model: model-id 'nowhere' is not fetched, and there is no file" in model.findings[0].message


def test_what_indexing_scripts_call_must_be_there() -> None:
    script = "field v type tensor<float>(x[2]) {{ indexing: input a | to_string | embed {} | attribute }}"
    missing = package(MUSIC, files={"schemas/music.sd": schema(script.format("other"))})
    said = "refers to an embedder with id 'other'. No component with that id is configured."
    assert said in problems_of(missing, check_schema)
    files: dict[str, str | bytes] = {"schemas/music.sd": schema(script.format("other")), "models/e.onnx": MODEL}
    other = package(MUSIC, COMPONENT, files)
    assert said in problems_of(other, check_schema)
    for name in ("e", ""):
        there = package(MUSIC, COMPONENT, {**files, "schemas/music.sd": schema(script.format(name))})
        assert model_of(there, check_schema).schemas["music"].fields["v"].script
