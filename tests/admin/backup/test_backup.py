"""Backups as folders and archives: what was put in comes out, and any damage is noticed before it does harm."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paperwasp.admin.backup.archive import backup_bytes, known_files, restore_backup, verify_backup, write_backup
from paperwasp.admin.backup.placing import Steps, finish_restore, place
from paperwasp.base.file_snapshot import (
    DATA,
    NAME,
    BackedUp,
    DamagedBackup,
    Manifest,
    UnknownBackup,
    decode_manifest,
    held,
    open_file,
    packed,
)
from paperwasp.errors import Conflict, Corruption, PaperwaspError

FORMS = ("folder", "plain.tar", "small.tar.zst")
SEGMENT = st.text(st.characters(codec="utf-8", exclude_characters="/\\\0."), min_size=1)
NAMES = st.lists(SEGMENT.filter(lambda text: len(text.encode()) < 60), min_size=1, max_size=4)
ANY = st.integers(0, 1 << 30)
"""Taken modulo what there is: the time in a manifest, and so the size of an archive, is never the same."""
SOME = {
    "config/keys/a": b"chosen",
    "content/x/log/1.log": bytes(range(256)) * 9,
    "content/x/empty": b"",
    "access": b"k",
}


def write(folder: Path, form: str, files: dict[str, bytes]) -> Path:
    """A backup of these files."""
    stream = io.BytesIO(b"".join(packed([held(name, content) for name, content in files.items()])))
    write_backup(stream, folder / form)
    return folder / form


def contents(folder: Path) -> dict[str, bytes]:
    """What a folder holds, by name; not the folders of a restore under way."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).parts[0].startswith(".")
    }


@pytest.mark.parametrize("form", FORMS)
@given(st.lists(NAMES, unique_by=lambda parts: parts[0], max_size=5), st.data())
def test_what_is_backed_up_is_restored(form: str, names: list[list[str]], data: st.DataObject) -> None:
    files = {"/".join(parts): data.draw(st.binary(max_size=2000)) for parts in names}
    files = {name: content for name, content in files.items() if name.split("/")[0] not in ("lock", "logs")}
    with TemporaryDirectory() as folder:
        backup = write(Path(folder), form, files)
        assert verify_backup(backup).files.keys() == files.keys()
        (target := Path(folder, "target")).mkdir()
        restore_backup(backup, target)
        assert contents(target) == files
        assert not any(path.name.startswith(".") for path in target.iterdir())


@pytest.mark.parametrize("form", FORMS)
@given(st.data())
def test_a_flipped_bit_is_found_or_harmless(form: str, data: st.DataObject) -> None:
    """Some bits of an archive mean nothing: what fills blocks up, and how much memory decompression may take."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        backup = write(folder, form, SOME)
        files = sorted(path for path in backup.rglob("*") if path.is_file()) if backup.is_dir() else [backup]
        damaged = [path for path in files if path.stat().st_size][
            data.draw(ANY) % (len(SOME) if backup.is_dir() else 1)
        ]
        content = bytearray(damaged.read_bytes())
        place_of_bit = data.draw(ANY) % (len(content) * 8)
        content[place_of_bit // 8] ^= 1 << place_of_bit % 8
        damaged.write_bytes(content)
        check_refused_or_same(backup, folder, may_be_harmless=form != "folder")


@pytest.mark.parametrize("form", FORMS[1:])
@given(st.data())
def test_a_cut_archive_is_found(form: str, data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        backup = write(folder, form, SOME)
        os.truncate(backup, data.draw(ANY) % backup.stat().st_size)
        check_refused_or_same(backup, folder, may_be_harmless=form != "folder")


def check_refused_or_same(backup: Path, folder: Path, *, may_be_harmless: bool) -> None:
    """Either nothing of the target changes, or what is restored is what was backed up."""
    (target := folder / "target").mkdir()
    (target / "before").write_text("there")
    try:
        verify_backup(backup)
    except PaperwaspError:
        with pytest.raises(PaperwaspError):
            restore_backup(backup, target, replace=True)
        assert contents(target) == {"before": b"there"}
        return
    assert may_be_harmless
    restore_backup(backup, target, replace=True)
    assert contents(target) == SOME


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: (data / "access").unlink(), "'access' is missing"),
        (lambda data: (data / "more").write_bytes(b""), "'more' does not belong to it"),
        (lambda data: (data / "access").write_bytes(b"K"), "the checksum of 'access' differs"),
        (lambda data: (data / "config/link").symlink_to("keys/a"), "'config/link' is a link"),
        (lambda data: (data.parent / NAME).unlink(), f"it has no {NAME}"),
        (lambda data: (data.parent / NAME).write_bytes(b"{}"), f"the checksum of its {NAME} differs"),
    ],
)
def test_a_folder_that_was_changed_is_found(change: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    backup = write(tmp_path, "folder", SOME)
    change(backup / DATA)
    with pytest.raises(DamagedBackup) as raised:
        verify_backup(backup)
    assert message in raised.value.message


def signed(content: object) -> bytes:
    """A manifest whose checksum fits, whatever it says."""
    text = orjson.dumps(content)
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text + b"\n"


def archive(members: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    """An archive that anybody could have made."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as written:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.type = kind if name != NAME else tarfile.REGTYPE
            written.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["../out", "/out", "a//b", "a/../../out", ".", "a/.", "a\\b", "lock", ".restored/a"])
def test_a_name_never_leads_out_of_the_data_directory(name: str, tmp_path: Path) -> None:
    backup = tmp_path / "evil.tar"
    backup.write_bytes(archive({DATA + name: b"", NAME: Manifest({name: BackedUp(0, "0" * 64)}).encode()}))
    (target := tmp_path / "inner" / "target").mkdir(parents=True)
    with pytest.raises(DamagedBackup):
        restore_backup(backup, target)
    assert {path.name for path in tmp_path.rglob("*")} == {"evil.tar", "inner", "target"}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_only_files_are_taken(kind: bytes, tmp_path: Path) -> None:
    backup = tmp_path / "evil.tar"
    backup.write_bytes(archive({DATA + "a": b"", NAME: Manifest({}).encode()}, kind))
    with pytest.raises(DamagedBackup, match="does not belong"):
        verify_backup(backup)


@pytest.mark.parametrize("content", [[], {}, {"format": "paperwasp-backup"}, {"format": 1, "version": 1, "files": []}])
def test_a_manifest_that_lacks_something_is_damaged(content: object, tmp_path: Path) -> None:
    backup = tmp_path / "odd.tar"
    backup.write_bytes(archive({NAME: signed(content)}))
    with pytest.raises(DamagedBackup):
        verify_backup(backup)


def test_a_backup_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    newer = {"format": "paperwasp-backup", "version": 2, "paperwasp": "9.0.0", "created": "", "files": []}
    backup = tmp_path / "newer.tar"
    backup.write_bytes(archive({NAME: signed(newer)}))
    with pytest.raises(UnknownBackup, match=r"of version 2, and was written by paperwasp 9\.0\.0"):
        restore_backup(backup, tmp_path, replace=True)
    assert backup.is_file()


@given(st.binary(max_size=3000))
@example(b"")
@example(b"\x28\xb5\x2f\xfd")
@example(bytes(1024))
def test_other_files_are_no_backups(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "file.tar")
        file.write_bytes(content)
        with pytest.raises(Corruption):
            verify_backup(file)


def test_no_piece_is_empty() -> None:
    """An empty one would look like the end."""
    sizes = (0, 1, 511, 512, 513, 1024)
    assert all(packed([held(str(size), bytes(size)) for size in sizes]))


@pytest.mark.parametrize("form", FORMS)
def test_a_stream_that_ends_early_leaves_nothing(form: str, tmp_path: Path) -> None:
    whole = b"".join(packed([held(name, content) for name, content in SOME.items()]))
    for size in range(0, len(whole) - 1024, 512):
        with pytest.raises(DamagedBackup):
            write_backup(io.BytesIO(whole[:size]), tmp_path / form)
        assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    (tmp_path / "plain.tar").touch()
    for form in ("folder", "plain.tar"):
        with pytest.raises(Conflict):
            write(tmp_path, form, SOME)
    assert (tmp_path / "plain.tar").read_bytes() == b""


@pytest.mark.parametrize(
    ("left", "told"),
    [({NAME: b"{}"}, "holds a whole backup"), ({f"{DATA}a": b""}, "not finished"), ({"a": b""}, "not empty")],
)
def test_what_is_in_the_way_of_a_backup_is_told(tmp_path: Path, left: dict[str, bytes], told: str) -> None:
    for name, content in left.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with pytest.raises(Conflict, match=told):
        write(tmp_path, "folder", SOME)
    assert contents(tmp_path / "folder") == left


@pytest.mark.parametrize("form", FORMS)
def test_a_bar_ends_with_all_bytes_of_the_files(form: str, tmp_path: Path) -> None:
    """Not with those of the archive, which has headers and padding besides."""
    noted = list[int]()
    stream = io.BytesIO(b"".join(packed([held(name, content) for name, content in SOME.items()])))
    write_backup(stream, tmp_path / form, note=noted.append)
    assert sum(noted) == sum(map(len, SOME.values()))
    assert backup_bytes(tmp_path / form) > 0
    verified = list[int]()
    verify_backup(tmp_path / form, verified.append)
    assert sum(verified) == backup_bytes(tmp_path / form)


def test_what_a_killed_backup_has_left_is_taken_over(tmp_path: Path) -> None:
    left = tmp_path / "folder.partial" / DATA / "old"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    assert set(contents(write(tmp_path, "folder", SOME))) == {NAME, *(f"{DATA}{name}" for name in SOME)}
    assert not left.exists()


def test_equal_files_of_an_earlier_backup_are_linked(tmp_path: Path) -> None:
    earlier = write(tmp_path, "folder", SOME)
    known = known_files(earlier)
    now = {**SOME, "access": b"another", "content/y": b"chosen"}
    stream = b"".join(packed([held(name, content) for name, content in now.items()], frozenset(known)))
    assert SOME["content/x/log/1.log"] not in stream
    write_backup(io.BytesIO(stream), tmp_path / "next", known)
    verify_backup(tmp_path / "next")
    assert contents(tmp_path / "next" / DATA) == now
    linked = {name for name in now if (tmp_path / "next" / DATA / name).stat().st_nlink > 1}
    assert linked == {"config/keys/a", "content/x/log/1.log", "content/x/empty", "content/y"}


def test_equal_files_are_copied_and_synced_where_there_are_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, synced = write(tmp_path, "folder", SOME), set[int]()

    def no_link(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    def fsync(descriptor: int, fsync: Callable[[int], None] = os.fsync) -> None:
        fsync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr(os, "fsync", fsync)
    known = known_files(earlier)
    stream = b"".join(packed([held(name, content) for name, content in SOME.items()], frozenset(known)))
    write_backup(io.BytesIO(stream), tmp_path / "next", known)
    verify_backup(tmp_path / "next")
    assert contents(tmp_path / "next" / DATA) == SOME
    assert {path.stat().st_ino for path in (tmp_path / "next").rglob("*")} <= synced


def test_damage_to_an_earlier_backup_is_not_taken_over(tmp_path: Path) -> None:
    """A link is only as good as what it leads to, so that is read when the next backup is verified."""
    earlier = write(tmp_path, "folder", SOME)
    known = known_files(earlier)
    (earlier / DATA / "content/x/log/1.log").write_bytes(bytes(256 * 9))
    stream = b"".join(packed([held(name, content) for name, content in SOME.items()], frozenset(known)))
    with pytest.raises(DamagedBackup, match="damaged"):
        write_backup(io.BytesIO(stream), tmp_path / "next", known)
    assert not (tmp_path / "next").exists()


def test_a_file_that_became_shorter_ends_the_backup(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_bytes(bytes(100))
    source = open_file("file", file)
    file.write_bytes(bytes(50))
    with pytest.raises(Corruption, match="offset 50"):
        b"".join(packed([source]))
    assert source.descriptor == -1


class Killed(BaseException):
    """The process ends here."""


def dying_after(calls: int) -> Steps:
    """The calls of the system, of which only a given number is made."""
    left = calls

    def count() -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1

    system = Steps()

    def rename(before: Path, after: Path) -> None:
        count()
        system.rename(before, after)

    def remove(path: Path) -> None:
        count()
        system.remove(path)

    def sync(path: Path) -> None:
        count()
        system.sync(path)

    return Steps(rename, remove, sync)


def test_a_kill_at_any_step_leaves_the_old_data_or_the_new(tmp_path: Path) -> None:
    old = {"config/keys/a": b"old", "content/gone": b"old", "lock": b"1", "logs/log": b"line"}
    new = {"config/keys/a": b"new", "content/x": b"new", "access": b"new"}
    kept = {"lock": b"1", "logs/log": b"line"}
    outcomes = []
    for calls in range(40):
        directory = tmp_path / str(calls)
        for folder, files in ((directory, old), (directory / ".restoring", new)):
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
        try:
            place(directory, dying_after(calls))
        except Killed:
            for more in range(calls % 5):  # and again, while it is finished
                try:
                    finish_restore(directory, dying_after(more))
                except Killed:
                    continue
            finish_restore(directory)
        found = contents(directory)
        assert found in (old, {**new, **kept})
        outcomes.append(found != old)
        assert [path.name for path in directory.iterdir() if path.name.startswith(".")] == (
            [] if outcomes[-1] else [".restoring"]
        )
    assert outcomes[0] is False
    assert outcomes[1:] == [True] * 39


def test_the_example_of_the_documentation_is_a_manifest() -> None:
    page = (Path(__file__).parents[3] / "docs" / "internals" / "formats" / "backup.md").read_text()
    example = page.partition("## Worked example")[2].partition("\nmanifest.json")[2].partition("```")[0]
    digest, text = example.split()
    manifest = decode_manifest(f"{digest}\n{text}\n".encode())
    assert manifest.files == {"config/keys/a": BackedUp(6, hashlib.sha256(b"chosen").hexdigest())}
