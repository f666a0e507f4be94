"""`paperwasp models`: what a package needs, and how models come into the cache."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp.authoring.model_cache import ADDRESSES, recorded_hashes
from tests.authoring.model_host import ModelHost, serving
from tests.client.commands import Ran, run_command

SERVICES = """<services version="1.0"><container id="d" version="1.0"><search/><document-api/>
<component id="near" type="hugging-face-embedder">
  <transformer-model path="models/m.onnx"/><tokenizer-model path="models/absent.json"/>
</component>
<component id="far" type="hugging-face-embedder">
  <transformer-model url="{host}/model.onnx"/><tokenizer-model model-id="e5-small-v2-vocab"/>
</component></container></services>"""
HUB_ADDRESS = "https://huggingface.co/intfloat/e5/resolve/main/onnx/model.onnx"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty model cache, and no cache of Hugging Face."""
    monkeypatch.setenv("PAPERWASP_MODEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "cache"


@pytest.fixture
def host() -> Iterator[ModelHost]:
    with serving() as host:
        yield host


def run(*arguments: object) -> Ran:
    return run_command("models", *arguments)


def package(folder: Path, host: str) -> Path:
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "m.onnx").write_bytes(b"model")
    (folder / "services.xml").write_text(SERVICES.format(host=host))
    return folder


def hub(folder: Path, content: bytes, blob: str) -> Path:
    """A cache of Hugging Face with one file of one repository."""
    repository = folder / "models--intfloat--e5"
    for path in ("refs", "blobs", "snapshots/abc/onnx"):
        (repository / path).mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (repository / "blobs" / blob).write_bytes(content)
    (repository / "snapshots" / "abc" / "onnx" / "model.onnx").symlink_to(f"../../../blobs/{blob}")
    return folder


def states(listed: Ran) -> list[str]:
    """The last column of each line of a table that begins with a component."""
    return [
        line.rstrip().split("  ")[-1].strip() for line in listed.out.splitlines() if line.startswith(("near", "far"))
    ]


def test_a_package_lists_what_it_needs_and_what_is_missing(tmp_path: Path, host: ModelHost) -> None:
    application = package(tmp_path / "app", host.url)
    listed = run("list", application)
    assert listed.code == 1
    assert states(listed) == ["in the package", "not in the package", "missing", "missing"]
    assert f"3 of 4 models missing: `paperwasp models fetch {application}`" in listed.out


def test_an_empty_cache_says_what_to_do(cache: Path) -> None:
    said = f"Model cache: {cache}\nNo models are there; `paperwasp models list APPLICATION` says what a package needs\n"
    assert run("list").out == said


def test_a_model_is_fetched_once_and_its_hash_is_kept(tmp_path: Path, host: ModelHost, cache: Path) -> None:
    application = package(tmp_path / "app", host.url)
    host.files["/model.onnx"] = b"weights" * 300_000
    assert run("fetch", f"{host.url}/model.onnx").code == 0
    (place,) = (path for path in cache.rglob("model.onnx"))
    assert place.read_bytes() == host.files["/model.onnx"]
    assert recorded_hashes() == {"127.0.0.1/model.onnx": hashlib.sha256(host.files["/model.onnx"]).hexdigest()}
    assert "is there" in run("fetch", f"{host.url}/model.onnx").out
    assert host.asked == ["/model.onnx"]
    assert states(run("list", application))[2] == "in the cache, 2.1 MB"
    assert sorted(path.name for path in cache.rglob("*") if path.is_file()) == ["SHA256SUMS", "model.onnx"]


def test_a_file_that_has_changed_is_damaged_and_fetched_again(tmp_path: Path, host: ModelHost, cache: Path) -> None:
    application = package(tmp_path / "app", host.url)
    host.files["/model.onnx"] = b"weights"
    run("fetch", f"{host.url}/model.onnx")
    (cache / "127.0.0.1" / "model.onnx").write_bytes(b"weight")
    assert states(run("list", application))[2] == "damaged"
    assert run("list").code == 1
    assert run("fetch", f"{host.url}/model.onnx").code == 0
    assert states(run("list", application))[2] == "in the cache, 7 bytes"
    assert run("list").code == 0


def test_what_breaks_off_or_has_another_hash_is_not_stored(host: ModelHost, cache: Path) -> None:
    host.files["/model.onnx"] = b"weights"
    host.promised["/model.onnx"] = 8
    broken = run("fetch", f"{host.url}/model.onnx")
    assert broken.code == 1 and "broke off after 7 of 8 bytes" in broken.out
    host.promised.clear()
    host.hashes["/model.onnx"] = "0" * 64
    other = run("fetch", f"{host.url}/model.onnx")
    assert other.code == 1 and f"{'0' * 64} was expected: nothing was stored" in other.out
    assert run("fetch", f"{host.url}/absent").out.startswith(f"Failed: {host.url}/absent answered 404 Not Found")
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_a_redirection_to_a_file_of_the_machine_is_not_followed(host: ModelHost, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    host.redirections["/model.onnx"] = (tmp_path / "secret").as_uri()
    refused = run("fetch", f"{host.url}/model.onnx")
    assert refused.code == 1 and "not allowed" in refused.out


def test_the_cache_of_hugging_face_is_asked_first(tmp_path: Path, cache: Path) -> None:
    hub(tmp_path / "hub", b"weights", hashlib.sha256(b"weights").hexdigest())
    assert run("fetch", HUB_ADDRESS).code == 0
    taken = cache / "huggingface.co" / "intfloat" / "e5" / "resolve" / "main" / "onnx" / "model.onnx"
    assert taken.read_bytes() == b"weights" and not taken.is_symlink()


def test_a_cache_of_hugging_face_is_taken_over_whole(tmp_path: Path) -> None:
    git_hash = hashlib.sha1(b"blob 7\0weights", usedforsecurity=False).hexdigest()
    assert run("add", hub(tmp_path / "elsewhere", b"weights", git_hash)).code == 0
    assert list(recorded_hashes()) == ["huggingface.co/intfloat/e5/resolve/main/onnx/model.onnx"]
    refused = run("add", tmp_path / "cache")
    assert refused.code == 1 and "is no cache of Hugging Face" in refused.err


def test_a_damaged_blob_is_refused(tmp_path: Path, cache: Path) -> None:
    damaged = run("add", hub(tmp_path / "elsewhere", b"weights", "0" * 64))
    assert damaged.code == 1 and "is damaged" in damaged.err
    assert list(cache.rglob("model.onnx")) == []


def test_a_file_is_added_by_a_name_and_a_hash(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "file").write_bytes(b"weights")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    digest = hashlib.sha256(b"weights").hexdigest()
    assert run("add", tmp_path / "link", "--as", "e5-small-v2", "--sha256", digest.upper()).code == 0
    assert (cache / "model-id" / "e5-small-v2").read_bytes() == b"weights"
    assert not (cache / "model-id" / "e5-small-v2").is_symlink()
    for arguments, said in (
        (("file", "--as", "e5-small-v2", "--sha256", "0" * 64), "was expected: nothing was stored"),
        (("file", "--as", "../x"), "model-id '../x' cannot be a file of the model cache"),
        (("file",), "--as NAME is needed"),
        (("absent", "--as", "x"), "There is no file"),
    ):
        refused = run("add", tmp_path / arguments[0], *arguments[1:])
        assert refused.code == 1 and said in refused.err
    assert recorded_hashes() == {"model-id/e5-small-v2": digest}


def test_model_ids_have_https_addresses_and_tokenizers() -> None:
    assert all(address.startswith("https://") for address in ADDRESSES.values())
    assert ADDRESSES["e5-small-v2"].endswith("/e5-small-v2/model.onnx")
    assert ADDRESSES["e5-small-v2-vocab"].endswith("/e5-small-v2/tokenizer.json")
    unknown = run("fetch", package_with_id := "https://huggingface.co/x/y")
    assert unknown.code == 1 and package_with_id in unknown.out
