"""`hugging-face-embedder`: what it makes of texts, against a plain twin of its model."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from paperwasp.components.embedders import registry, transformer
from paperwasp.components.embedders.registry import check_components, embedders_of, load_models
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import Finding, Position
from paperwasp.indexing.components import Context
from paperwasp.ranking.onnx.session import OnnxSession, SessionSettings
from paperwasp.schema.files import Component, PackageFiles
from tests.components.embedders.tiny_models import MASK, PLACES, assert_near, tiny_bert, tiny_tokenizer, tokens_of, twin
from tests.ranking.onnx.onnx_models import model

DOCUMENT, QUERY = Context("embedding"), Context("query(q)")
FLOATS = "tensor<float>(x[16])"
FILES = {"m/model.onnx": tiny_bert(), "m/tokenizer.json": tiny_tokenizer()}
MODELS = {"transformer-model@path": "m/model.onnx", "tokenizer-model@path": "m/tokenizer.json"}
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
PLACE = Position("services.xml", 3, 5)


def component(**settings: str) -> Component:
    said = {name.replace("__", "/").replace("_", "-"): value for name, value in settings.items()}
    return Component("component", "e5", "hugging-face-embedder", settings={**MODELS, **said}, position=PLACE)


def embedded(
    texts: Sequence[str],
    type_: str = FLOATS,
    context: Context = DOCUMENT,
    files: Mapping[str, bytes] = FILES,
    settings: Mapping[str, str] = NO_SETTINGS,
    **more: str,
) -> list[NDArray[Any]]:
    (found,) = embedders_of([component(**settings, **more)], PackageFiles(files)).values()
    return [tensor.cells[0] for tensor in found.embed(texts, TensorType.parse(type_), context)]


def findings(files: Mapping[str, bytes] = FILES, **settings: str) -> list[Finding]:
    return list(check_components([component(**settings)], PackageFiles(files)))


def test_the_mean_of_the_tokens() -> None:
    assert findings() == []
    (found,) = embedded(["the cat walks"])
    assert_near(found, twin(tokens_of("the", "cat", "walk", "##s")).mean(axis=0))


def test_texts_together_are_what_they_are_alone() -> None:
    texts = ["the cat walks", "", "blue", "the sky is blue", "a dog walking . the sky is red", "the cat walks"]
    words = [
        ("the", "cat", "walk", "##s"),
        (),
        ("blue",),
        ("the", "sky", "is", "blue"),
        ("a", "dog", "walk", "##ing", ".", "the", "sky", "is", "red"),
        ("the", "cat", "walk", "##s"),
    ]
    for found, expected in zip(embedded(texts), words, strict=True):
        assert_near(found, twin(tokens_of(*expected)).mean(axis=0))


@pytest.mark.parametrize(("strategy", "place"), [("cls", 0), ("last", -1)])
def test_pooling_of_one_token(strategy: str, place: int) -> None:
    for found, words in zip(
        embedded(["the cat", "blue"], pooling_strategy=strategy), (("the", "cat"), ("blue",)), strict=True
    ):
        assert_near(found, twin(tokens_of(*words))[place])


def test_normalize_after_cutting() -> None:
    """The first values of the vector, as those of a smaller one, have the length 1."""
    (found,) = embedded(["the cat"], "tensor<float>(x[4])", normalize="true")
    whole = twin(tokens_of("the", "cat")).mean(axis=0)[:4]
    assert_near(found, whole / np.linalg.norm(whole))


def test_bits() -> None:
    """An eighth of the dimensions or less: a bit for each of the first values, the first the highest of its byte."""
    values = twin(tokens_of("the", "cat")).mean(axis=0)
    bits = "".join("1" if value > 0 else "0" for value in values)
    expected = [int(bits[:8], 2), int(bits[8:], 2)]
    for size in (2, 1):
        (found,) = embedded(["the cat"], f"tensor<int8>(x[{size}])")
        assert [int(cell) % 256 for cell in found] == expected[:size]


def test_bytes() -> None:
    """More than an eighth of the dimensions as int8: each value times 127, rounded and bounded."""
    values = twin(tokens_of("the", "cat")).mean(axis=0)[:3]
    (found,) = embedded(["the cat"], "tensor<int8>(x[3])", normalize="true")
    assert found.tolist() == [int(np.floor(value * 127 + 0.5)) for value in values / np.linalg.norm(values)]
    (bounded,) = embedded(["the cat"], "tensor<int8>(x[3])")
    assert bounded.tolist() == [int(np.clip(np.floor(value * 127 + 0.5), -128, 127)) for value in values]


def test_bfloat16() -> None:
    (found,) = embedded(["the cat"], "tensor<bfloat16>(x[16])")
    np.testing.assert_allclose(found, twin(tokens_of("the", "cat")).mean(axis=0), rtol=2**-7)
    assert not (found.view(np.uint32) & 0xFFFF).any()


@pytest.mark.parametrize(
    ("context", "settings", "words"),
    [
        (DOCUMENT, {"prepend__document": "passage:", "prepend__query": "query:"}, ("passage:", "cat")),
        (QUERY, {"prepend__document": "passage:", "prepend__query": "query:"}, ("query:", "cat")),
        (QUERY, {"prepend__document": "passage:"}, ("passage:", "cat")),
        (DOCUMENT, {"prepend__query": "query:"}, ("cat",)),
    ],
)
def test_prepend(context: Context, settings: dict[str, str], words: tuple[str, ...]) -> None:
    """Instructions go before the text with a space; that for documents is for queries that have none (Vespa)."""
    (found,) = embedded(["cat"], context=context, settings=settings)
    assert_near(found, twin(tokens_of(*words)).mean(axis=0))


def test_long_texts_are_cut() -> None:
    (found,) = embedded(["the cat is a blue dog"], max_tokens="4")
    assert_near(found, twin(tokens_of("the", "cat")).mean(axis=0))
    cutting = tiny_tokenizer(
        truncation={"max_length": 3, "stride": 0, "strategy": "LongestFirst", "direction": "Right"}
    )
    (found,) = embedded(["the cat is a blue dog"], files={**FILES, "m/tokenizer.json": cutting}, max_tokens="4")
    assert_near(found, twin(tokens_of("the")).mean(axis=0))
    (warning,) = findings({**FILES, "m/tokenizer.json": cutting}, max_tokens="4")
    said = "max-tokens 4 has no effect: the tokenizer 'm/tokenizer.json' cuts texts at 3 tokens"
    assert warning.level == "WARNING" and said in warning.message
    assert findings({**FILES, "m/tokenizer.json": cutting}) == findings(max_tokens="4") == []


def test_a_text_that_the_model_does_not_take() -> None:
    """It has more tokens than the model has places."""
    with pytest.raises(ValueError, match=r"m/model\.onnx does not run with this text: "):
        embedded(["the cat", "a " * PLACES])
    (found,) = embedded(["the cat"])
    assert_near(found, twin(tokens_of("the", "cat")).mean(axis=0))


def test_the_padding_of_the_file_is_not_for_us() -> None:
    padding: dict[str, Any] = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": MASK, "pad_type_id": 0, "pad_token": "[MASK]"}
    (found,) = embedded(["the cat"], files={**FILES, "m/tokenizer.json": tiny_tokenizer(padding=padding)})
    assert_near(found, twin(tokens_of("the", "cat")).mean(axis=0))


def sums(inputs: Sequence[str], output: str = "out", *, pools: bool = False) -> bytes:
    """A model that gives each token, or the text, the sum of its inputs in one dimension."""
    nodes = [helper.make_node("Sum", [f"{name}_f" for name in inputs], ["sum"])]
    nodes = [helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT) for name in inputs] + nodes
    if pools:
        nodes.append(helper.make_node("ReduceSum", ["sum", "axis"], [output], keepdims=1))
    else:
        nodes.append(helper.make_node("Unsqueeze", ["sum", "axis"], [output]))
    shape = ("batch", 1) if pools else ("batch", "tokens", 1)
    given = dict.fromkeys(inputs, (TensorProto.INT64, ("batch", "tokens")))
    axis = np.array([1 if pools else 2], np.int64)
    return model(nodes, given, {output: (TensorProto.FLOAT, shape)}, {"axis": axis})


@pytest.mark.parametrize("inputs", [("input_ids",), ("input_ids", "attention_mask")])
def test_models_with_fewer_inputs(inputs: tuple[str, ...]) -> None:
    """Texts of a model that has no attention mask are never padded."""
    files = {**FILES, "m/model.onnx": sums(inputs)}
    assert findings(files, transformer_output="out") == []
    found = embedded(["the cat", "the"], "tensor<float>(x[1])", files=files, transformer_output="out")
    for value, words in zip(found, (("the", "cat"), ("the",)), strict=True):
        assert value.tolist() == [pytest.approx(np.mean(tokens_of(*words)) + (len(inputs) - 1))]


def test_numbers_that_are_not_finite() -> None:
    """The model divides each token's number by how far it is from that of `cat`."""
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["number", "cat"], ["distance"]),
        helper.make_node("Div", ["number", "distance"], ["share"]),
        helper.make_node("Unsqueeze", ["share", "axis"], ["last_hidden_state"]),
    ]
    outputs = {"last_hidden_state": (TensorProto.FLOAT, ("batch", "tokens", 1))}
    cat = np.array(tokens_of("cat")[1:2], np.float32)
    constants: dict[str, NDArray[Any]] = {"cat": cat, "axis": np.array([2], np.int64)}
    made = model(nodes, {"input_ids": (TensorProto.INT64, ("batch", "tokens"))}, outputs, constants)
    files = {**FILES, "m/model.onnx": made}
    numbers = np.array(tokens_of("the"), np.float64)
    (found,) = embedded(["the"], "tensor<float>(x[1])", files=files)
    assert found.tolist() == [pytest.approx(np.mean(numbers / (numbers - cat[0])))]
    for type_ in ("tensor<float>(x[1])", "tensor<int8>(x[1])"):
        with pytest.raises(ValueError, match="The model's output has a number that is not finite"):
            embedded(["the cat"], type_, files=files)


def test_names_of_inputs_and_output() -> None:
    files = {**FILES, "m/model.onnx": sums(("a", "b", "c"), "d")}
    names = {"transformer_input_ids": "a", "transformer_attention_mask": "b", "transformer_token_type_ids": "c"}
    (found,) = embedded(["the"], "tensor<float>(x[1])", files=files, transformer_output="d", settings=names)
    assert found.tolist() == [pytest.approx(np.mean(tokens_of("the")) + 1)]


def test_a_model_that_pools() -> None:
    files = {**FILES, "m/model.onnx": sums(("input_ids", "attention_mask"), "last_hidden_state", pools=True)}
    (found,) = embedded(["the cat"], "tensor<float>(x[1])", files=files, pooling_strategy="none")
    assert found.tolist() == [sum(tokens_of("the", "cat")) + 4]
    assert [each.message for each in findings(files)] == [
        "component 'e5': Expected pooling-strategy 'none' with 2 output dimensions"
    ]
    assert "Unexpected pooling-strategy 'none' with 3" in findings(pooling_strategy="none")[0].message


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("tensor<float>(x{})", "dimension should be indexed"),
        ("tensor<float>(x[4],y[4])", "should only have one dimension"),
        ("tensor<float>(x{},y[4])", "should only have one dimension"),
        ("tensor<float>(x[17])", "Cannot quantize 16 dimensions into tensor<float>"),
        ("tensor<int8>(x[17])", "Cannot quantize 16 dimensions into tensor<int8>"),
    ],
)
def test_types_that_it_does_not_make(type_: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        embedded(["the"], type_)


@pytest.mark.parametrize(
    ("file", "content", "settings", "message"),
    [
        ("m/tokenizer.json", b"{", {}, "m/tokenizer.json is no tokenizer: EOF"),
        ("m/tokenizer.json", b"\xff", {}, "m/tokenizer.json is no tokenizer: "),
        ("m/tokenizer.json", b'{"version": "1.0"}', {}, "m/tokenizer.json is no tokenizer: "),
        ("m/model.onnx", b"x", {}, "m/model.onnx is no ONNX model: "),
        ("m/model.onnx", tiny_bert()[:5000], {}, "m/model.onnx is no ONNX model: it is cut off"),
        ("m/model.onnx", sums(("input_ids",)), {}, "Model does not contain required output: 'last_hidden_state'. Mod"),
        (
            "m/model.onnx",
            sums(("x", "y")),
            {},
            "Model does not contain required input: 'input_ids'. Model contains: x,y",
        ),
        (
            "m/model.onnx",
            sums(("input_ids", "attention_mask", "token_type_ids", "more"), "last_hidden_state"),
            {},
            "Model needs more inputs than an embedder has: more",
        ),
        ("m/model.onnx", tiny_bert(), {"transformer_output": "other"}, "required output: 'other'"),
        ("m/model.onnx", tiny_bert(), {"transformer_token_type_ids": ""}, "m/model.onnx: Model needs more inputs"),
    ],
)
def test_files_that_do_not_fit_are_told_at_the_deployment(
    file: str, content: bytes, settings: dict[str, str], message: str
) -> None:
    (found,) = findings({**FILES, file: content}, **settings)
    assert found.level == "ERROR" and found.position == PLACE
    assert message in found.message and found.message.startswith("component 'e5': ")


def test_a_model_with_data_in_other_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever they are: nothing outside the package is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.bin").write_bytes(bytes(4096))
    made = onnx.load_model_from_string(tiny_bert())
    for location in ("weights.bin", "../weights.bin", str(tmp_path / "weights.bin")):
        tensor = made.graph.initializer[0]
        del tensor.external_data[:]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
        (found,) = findings({**FILES, "m/model.onnx": made.SerializeToString()})
        assert found.level == "ERROR"
        assert f"m/model.onnx does not run: its weights are in another file, '{location}'" in found.message


def test_files_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is named by url or model-id is in the folder for such models, or it is said where it should be."""
    monkeypatch.setenv("PAPERWASP_MODEL_CACHE", str(tmp_path))
    settings = {"transformer-model@url": "https://some.place/v2/model.onnx?x=1", "tokenizer-model@model-id": "e5/t"}
    there = Component("component", "e5", "hugging-face-embedder", settings=settings, position=PLACE)
    (found,) = check_components([there], {})
    place = tmp_path / "some.place" / "v2" / "model.onnx"
    assert found.level == "WARNING" and found.position == PLACE
    assert (
        f"transformer-model: url 'https://some.place/v2/model.onnx?x=1' is not fetched, and there is no file '{place}'"
        in found.message
    )
    (waiting,) = embedders_of([there], {}).values()
    with pytest.raises(ValueError, match="is not fetched, and there is no file"):
        waiting.embed(["the"], TensorType.parse(FLOATS), DOCUMENT)
    for path, content in ((place, tiny_bert()), (tmp_path / "model-id" / "e5" / "t", tiny_tokenizer())):
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    assert list(check_components([there], {})) == []
    monkeypatch.setattr(registry, "_LOOKS_SECONDS", 0.0)  # the embedder that waited finds them now
    (tensor,) = waiting.embed(["the"], TensorType.parse(FLOATS), DOCUMENT)
    assert_near(tensor.cells[0], twin(tokens_of("the")).mean(axis=0))


@pytest.mark.parametrize(
    "settings",
    [
        {"transformer-model@url": "https://some.place/../../x"},
        {"transformer-model@url": "file:///etc/passwd"},
        {"transformer-model@url": "https://some.place/%2e%2e/%2e%2e/x"},
        {"transformer-model@model-id": "../x"},
        {"transformer-model@model-id": "link/x"},
    ],
)
def test_no_file_outside_the_folder_for_models(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    (folder / "model-id").mkdir(parents=True)
    (tmp_path / "x").write_bytes(tiny_bert())
    (folder / "model-id" / "link").symlink_to(tmp_path)
    monkeypatch.setenv("PAPERWASP_MODEL_CACHE", str(folder))
    escaping = Component("component", "e5", "hugging-face-embedder", settings=settings, position=PLACE)
    (found,) = check_components([escaping], {})
    assert found.level == "WARNING"
    assert "cannot be a file of the model cache" in found.message or "leads out of the model cache" in found.message


def test_many_threads() -> None:
    """Threads share runs, and each has the vectors of its own texts."""
    (shared,) = embedders_of([component()], PackageFiles(FILES)).values()
    words = ("a", "blue", "cat", "dog", "is", "red", "sky", "the", "walk")
    made: dict[int, NDArray[Any]] = {}

    def work(number: int) -> None:
        text = " ".join(words[: number % 9 + 1]) + f" {words[number // 9]}"
        made[number] = shared.embed([text], TensorType.parse(FLOATS), DOCUMENT)[0].cells[0]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(81)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, vector in made.items():
        expected = twin(tokens_of(*words[: number % 9 + 1], words[number // 9])).mean(axis=0)
        assert_near(vector, expected)
    assert len(made) == 81


def test_models_are_loaded_before_the_first_text(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def session_of(path: str, content: bytes, settings: SessionSettings) -> OnnxSession:
        loaded.append(path)
        return OnnxSession(content, settings)

    monkeypatch.setattr(transformer, "session_of", session_of)
    found = embedders_of([component(max_tokens="63")], PackageFiles(FILES))
    load_models([*found.values(), object()])
    assert loaded == ["m/model.onnx"]
    found["e5"].embed(["the"], TensorType.parse(FLOATS), DOCUMENT)
    assert loaded == ["m/model.onnx"]


def test_settings_without_effect_are_told() -> None:
    settings = {"batching@max-size": "8", "onnx-gpu-device": "0"}
    told = Component("component", "e5", "hugging-face-embedder", settings={**MODELS, **settings}, position=PLACE)
    found = list(check_components([told], PackageFiles(FILES)))
    assert {(each.level, each.position) for each in found} == {("INFO", PLACE)}
    assert [each.message.split(" is accepted")[0] for each in found] == [
        f"component 'e5': {name}" for name in ("batching", "onnx-gpu-device")
    ]


def test_settings_of_the_runtime() -> None:
    settings = {"onnx_execution_mode": "parallel", "onnx_interop_threads": "2", "onnx_intraop_threads": "-1"}
    settings["onnx_optimize_model"] = "false"
    (found,) = embedded(["the cat"], settings=settings, onnx_gpu_device="0")
    assert_near(found, twin(tokens_of("the", "cat")).mean(axis=0))


def test_the_tokenizer_is_as_large_as_files_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.limits.embedding.TOKENIZER_FILE_BYTES", 100)
    (found,) = findings({**FILES, "m/tokenizer.json": tiny_tokenizer() + b" "})
    assert found.message == "component 'e5': m/tokenizer.json has more than 100 bytes"
