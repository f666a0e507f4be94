"""Archives from strangers: what is read, what is refused, and that nothing else comes out."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.errors import PaperwaspError, UnreadablePackage

FILES = {"services.xml": b"<services/>", "schemas/music.sd": b"schema music {}", "models/m.bin": bytes(range(256)) * 9}


def zipped(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return buffer.getvalue()


def zip_of(*entries: tuple[zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry, content in entries:
            archive.writestr(entry, content)
    return buffer.getvalue()


def tarred(build: Callable[[tarfile.TarFile], None]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        build(archive)
    return buffer.getvalue()


def tar_entry(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.linkname = kind, size, link
    return entry


def tarred_files(files: dict[str, bytes], prefix: str = "") -> bytes:
    def build(archive: tarfile.TarFile) -> None:
        if prefix:
            archive.addfile(tar_entry(prefix, tarfile.DIRTYPE))
        for path, content in files.items():
            archive.addfile(tar_entry(prefix + path, size=len(content)), io.BytesIO(content))

    return tarred(build)


@pytest.mark.parametrize(
    "archive",
    [
        zipped(FILES),
        zipped(FILES, zipfile.ZIP_STORED),
        zipped({"schemas/": b"", **FILES}),
        tarred_files(FILES),
        tarred_files(FILES, "./"),
        zipped({f"./{path}": content for path, content in FILES.items()}),
        zipped({path.replace("/", "/./"): content for path, content in FILES.items()}),
        zipped({f"application/{path}": content for path, content in FILES.items()}),
        tarred_files(FILES, "my-app/"),
    ],
    ids=[
        "deflated",
        "stored",
        "with a folder",
        "tar.gz",
        "tar.gz of .",
        "dots",
        "more dots",
        "in a folder",
        "tar of it",
    ],
)
def test_files_come_out_as_they_went_in(archive: bytes) -> None:
    assert dict(read_package(archive).files) == FILES


def test_only_the_folder_of_a_package_is_left_out() -> None:
    for files in ({"schemas/a.sd": b""}, {"a/services.xml": b"", "b/x": b""}, {"a/b/services.xml": b""}):
        assert dict(read_package(zipped(files)).files) == files


def test_the_checksum_is_of_the_files_not_of_the_archive() -> None:
    checksums = {read_package(archive).checksum for archive in (zipped(FILES), tarred_files(FILES))}
    assert len(checksums) == 1
    assert read_package(zipped({**FILES, "more": b""})).checksum not in checksums


def test_a_package_zips_itself_always_the_same() -> None:
    package = read_package(zipped(FILES))
    assert package.to_zip() == ApplicationPackage(dict(reversed(FILES.items()))).to_zip()
    assert dict(read_package(package.to_zip()).files) == FILES


UNSAFE = ["/etc/passwd", "../up", "a/../../up", "a//b", "a/./../b", "..", "C:/x", "a\\b", "a\nb", "x" * 2000]


@pytest.mark.parametrize("path", UNSAFE)
def test_paths_that_lead_outside_are_refused(path: str) -> None:
    with pytest.raises(UnreadablePackage, match="path"):
        read_package(zipped({"services.xml": b"", path: b""}))
    with pytest.raises(UnreadablePackage, match="path"):
        read_package(tarred_files({"services.xml": b"", path: b""}))


def test_a_path_with_a_zero_byte_is_refused() -> None:
    archive = zipped({"services.xml#x": b""}).replace(b"services.xml#x", b"services.xml\0x")
    with pytest.raises(UnreadablePackage, match="not allowed"):
        read_package(archive)


def test_a_link_in_a_zip_is_refused() -> None:
    entry = zipfile.ZipInfo("link")
    entry.create_system = 3
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(UnreadablePackage, match=r"'link'.* neither a file nor a folder"):
        read_package(zip_of((entry, b"/etc/passwd")))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"S"])
def test_links_and_devices_in_a_tar_are_refused(kind: bytes) -> None:
    with pytest.raises(UnreadablePackage):
        read_package(tarred(lambda archive: archive.addfile(tar_entry("x", kind, link="services.xml"))))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "paths", [("a", "a"), ("a", "./a"), ("a/b", "a/./b"), ("a", "a/b"), ("a/b", "a"), ("a/b/c", "a/b")]
)
def test_two_entries_that_exclude_each_other_are_refused(paths: tuple[str, str]) -> None:
    with pytest.raises(UnreadablePackage, match="more than once"):
        read_package(zip_of(*((zipfile.ZipInfo(path), b"") for path in paths)))


def test_encrypted_entries_are_refused() -> None:
    archive = bytearray(zipped({"a": b"x"}, zipfile.ZIP_STORED))
    archive[6] |= 1
    archive[archive.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(UnreadablePackage, match=r"'a'.*encrypted"):
        read_package(bytes(archive))


def test_other_compressions_are_refused() -> None:
    with pytest.raises(UnreadablePackage, match="unsupported"):
        read_package(zipped({"a": b"x" * 100}, zipfile.ZIP_LZMA))


def test_bombs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PACKAGE_UNPACKED_FREE_BYTES", 1000)
    zeros = bytes(1_000_000)
    for archive in (zipped({"a": zeros}), tarred_files({"a": zeros}), gzip.compress(zeros)):
        with pytest.raises(UnreadablePackage, match="unpacks to too much"):
            read_package(archive)


def test_a_zip_that_lies_about_its_size_is_refused() -> None:
    archive = zipped({"a": bytes(1_000_000)})
    lie = archive.replace((1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(UnreadablePackage):
        read_package(lie)


def peak_bytes(archive: bytes) -> int:
    """The most memory that is taken until the archive is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(UnreadablePackage):
            read_package(archive)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_no_more_is_unpacked_than_an_entry_of_a_zip_says_that_it_has() -> None:
    archive = zipped({"a": bytes(40_000_000)})
    assert peak_bytes(archive.replace((40_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))) < 2_000_000


@pytest.mark.parametrize("members", [1, 3])
def test_what_a_tar_unpacks_to_is_counted_before_it_is_kept(members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PACKAGE_UNPACKED_FREE_BYTES", 20_000_000)
    archive = gzip.compress(bytes(40_000_000 // members)) * members
    assert len(archive) * limits.PACKAGE_UNPACKED_FACTOR < 20_000_000
    assert peak_bytes(archive) < 5_000_000


def test_a_tar_of_all_that_is_allowed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last byte: the file, its head, and the blocks that end and fill a tar."""
    archive = tarred_files({"a": bytes(300_000)})
    monkeypatch.setattr(limits, "PACKAGE_UNPACKED_FREE_BYTES", len(gzip.decompress(archive)))
    assert read_package(archive).files == {"a": bytes(300_000)}
    monkeypatch.setattr(limits, "PACKAGE_UNPACKED_FREE_BYTES", len(gzip.decompress(archive)) - 1)
    with pytest.raises(UnreadablePackage, match="unpacks to too much"):
        read_package(archive)


def test_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PACKAGE_FILES", 5)
    files = {str(number): b"" for number in range(6)}
    for archive in (zipped(files), tarred_files(files)):
        with pytest.raises(UnreadablePackage, match="more than 5 files"):
            read_package(archive)


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04", b"PK\x05\x06" + bytes(10), b"\x1f\x8b", b"<services/>"])
def test_what_is_no_archive_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadablePackage):
        read_package(content)


WHOLE = [zipped(FILES), zipped(FILES, zipfile.ZIP_STORED), tarred_files(FILES)]


def test_an_archive_cut_anywhere_is_refused_or_read() -> None:
    for archive in WHOLE:
        for length in range(len(archive)):
            try_to_read(archive[:length])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(WHOLE), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6))
def test_mutated_archives_never_surprise(archive: bytes, changes: list[tuple[int, int]]) -> None:
    mutated = bytearray(archive)
    for place, value in changes:
        mutated[place % len(mutated)] = value
    try_to_read(bytes(mutated))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08"]), st.binary(max_size=400))
def test_random_bytes_never_surprise(start: bytes, rest: bytes) -> None:
    try_to_read(start + rest)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=1500))
def test_random_tars_never_surprise(content: bytes) -> None:
    try_to_read(gzip.compress(content))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6))
def test_mutated_tars_never_surprise(changes: list[tuple[int, int]]) -> None:
    mutated = bytearray(gzip.decompress(WHOLE[2]))
    for place, value in changes:
        mutated[place % 2048] = value
    try_to_read(gzip.compress(bytes(mutated)))


def try_to_read(content: bytes) -> None:
    try:
        package = read_package(content)
    except PaperwaspError:
        return
    for path in package.files:
        assert not path.startswith("/") and ".." not in path.split("/")
