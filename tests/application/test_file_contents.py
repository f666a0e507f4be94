"""Large files of a package lie on disk, and are the same there: read, compared, edited, packed again."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.application.package_files import looked_at
from paperwasp.base.file_contents import OnDisk, Scratch, digest_of, held_contents, size_of, total_bytes
from paperwasp.configserver.editing import delete, put_file
from paperwasp.errors import Corruption
from paperwasp.schema.files import PackageFiles
from tests.application.test_archive import tarred_files, zipped

LARGE, LARGER = os.urandom(3000), os.urandom(5000)
FILES = {"services.xml": b"<services/>", "ext/x": b"1" * 2000, "models/a.onnx": LARGE, "models/b.onnx": LARGER}


@pytest.fixture(autouse=True)
def _little_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PACKAGE_FILE_KEPT_BYTES", 1000)


def on_disk(package: ApplicationPackage) -> set[str]:
    return {path for path, content in held_contents(package.files).items() if isinstance(content, OnDisk)}


@pytest.mark.parametrize(
    "archive", [zipped(FILES), tarred_files(FILES), zipped({f"a/{p}": c for p, c in FILES.items()})]
)
def test_a_package_is_the_same_in_memory_and_on_disk(archive: bytes, tmp_path: Path) -> None:
    kept, spilled = read_package(archive), read_package(archive, tmp_path)
    assert on_disk(kept) == set()
    assert on_disk(spilled) == {"ext/x", "models/a.onnx", "models/b.onnx"}
    assert dict(spilled.files) == dict(kept.files) == FILES
    assert spilled.checksum == kept.checksum
    assert spilled.to_zip() == kept.to_zip()
    assert [size_of(spilled.files, path) for path in FILES] == [len(content) for content in FILES.values()]
    assert [digest_of(spilled.files, path) for path in FILES] == [digest_of(FILES, path) for path in FILES]
    assert list(tmp_path.iterdir()) == []  # the file has no name


def test_what_is_taken_of_a_package_stays_on_disk(tmp_path: Path) -> None:
    package = read_package(zipped(FILES), tmp_path)
    assert on_disk(ApplicationPackage(looked_at(package.files))) == {"models/a.onnx", "models/b.onnx"}
    edited, _ = put_file("models/c.onnx", b"c")(package, ())
    edited, _ = delete("ext/x")(edited, ())
    assert on_disk(edited) == {"models/a.onnx", "models/b.onnx"}
    assert dict(edited.files) == {path: FILES[path] for path in FILES if path != "ext/x"} | {"models/c.onnx": b"c"}
    file = PackageFiles(edited.files)["models/b.onnx"]
    assert (file.read(), file.size_bytes, file.digest) == (LARGER, 5000, digest_of(FILES, "models/b.onnx"))


def test_sizes_and_digests_read_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = read_package(zipped(FILES), tmp_path).files
    monkeypatch.setattr(OnDisk, "read", lambda _: pytest.fail("it was read"))
    assert total_bytes(files) == sum(map(len, FILES.values()))
    assert len({digest_of(files, path) for path in files}) == len(FILES)


def test_a_full_disk_leaves_everything_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what had been written of a file, and what was read in pieces, some of which were written in part."""
    write, left = os.pwrite, 2500

    def write_some(file: int, content: memoryview, at: int) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(file, content[:left], at)
        left -= written
        return written

    monkeypatch.setattr(os, "pwrite", write_some)
    scratch = Scratch(tmp_path)
    assert scratch.keep([LARGER[:900], LARGER[900:1100], LARGER[1100:3000], LARGER[3000:]]) == LARGER
    assert scratch.keep([LARGE]) == LARGE
    assert dict(read_package(zipped(FILES), tmp_path / "not there").files) == FILES


def test_the_file_goes_with_the_last_content(tmp_path: Path) -> None:
    content = held_contents(read_package(zipped(FILES), tmp_path).files)["models/a.onnx"]
    assert isinstance(content, OnDisk)
    opened = content.file.number
    gc.collect()
    assert content.read() == LARGE
    os.truncate(opened, 10)
    with pytest.raises(Corruption, match="ends at byte"):
        content.read()
    del content
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened)
