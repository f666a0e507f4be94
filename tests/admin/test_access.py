"""Keys and refused requests.

Keys are made once, found by their token alone and gone at once when revoked, under damage, crashes and many commands at
a time. The log names refused requests without their secrets.
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
import stat
import threading
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.admin.access import Key, KeyFolder, KnownKeys, Refusals, bearer_token, shown_id
from paperwasp.base.env import SYSTEM
from paperwasp.base.records import replace
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import ClientCertificate, Request
from paperwasp.limits.access import ACCESS_REFUSALS, ACCESS_REFUSALS_SECONDS
from tests.chance import SEED


def test_a_key_is_found_by_its_token_alone(tmp_path: Path) -> None:
    folder, known = KeyFolder(tmp_path / "keys"), KnownKeys(tmp_path / "keys")
    assert known.find("pw_aaaaaaaaaaaaaaaa_" + "a" * 43) is None
    key, token = folder.create("feed", ("read", "write"), 60)
    assert known.find(token) == key == folder.keys()[0]
    assert key.expires_seconds == key.created_seconds + 60
    for wrong in (token[:-1], token + "a", token[:-1] + ("a" if token[-1] != "a" else "b"), token.upper(), f" {token}"):
        assert known.find(wrong) is None
    other, other_token = folder.create("feed", ("read",))
    assert known.find(other_token) == other
    assert known.find(token[:20] + other_token[20:]) is None


def test_the_secret_is_in_no_file(tmp_path: Path) -> None:
    key, token = KeyFolder(tmp_path / "keys").create("feed", ("read",))
    (path,) = (tmp_path / "keys").iterdir()
    content = path.read_bytes()
    assert token.split("_", 2)[2].encode() not in content
    assert orjson.loads(content)["sha256"] == hashlib.sha256(token.encode()).hexdigest() == key.sha256.hex()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert shown_id(token) == key.id and shown_id("pw_x_y") == shown_id("a" * 10_000) == ""


def test_revoking_by_name_or_id(tmp_path: Path) -> None:
    folder, known = KeyFolder(tmp_path / "keys"), KnownKeys(tmp_path / "keys")
    made = [folder.create(name, ("read",)) for name in ("a", "a", "b", "b")]
    assert set(folder.revoke("a")) == {key for key, _ in made[:2]}
    assert folder.revoke(made[2][0].id) == [made[2][0]]
    assert [known.find(token) for _, token in made] == [None, None, None, made[3][0]]
    with pytest.raises(NotFound, match="no key 'a'"):
        folder.revoke("a")


@pytest.mark.parametrize("run", range(3))
def test_the_service_sees_every_change_at_once(run: int, tmp_path: Path) -> None:
    """Also of files that get the number of one that has gone, within one tick of the file system's clock."""
    choice = random.Random(SEED + run)
    folder, known = KeyFolder(tmp_path / "keys"), KnownKeys(tmp_path / "keys")
    there: dict[str, str] = {}
    gone: list[str] = []
    for _ in range(60):
        if there and choice.random() < 0.45:
            id = choice.choice(list(there))
            folder.revoke(id)
            gone.append(there.pop(id))
        else:
            key, token = folder.create("a", ("read",))
            there[key.id] = token
        for token in choice.sample(list(there.values()), min(3, len(there))):
            assert known.find(token) is not None
        assert all(known.find(token) is None for token in gone[-3:])


def test_a_settled_folder_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = replace(SYSTEM, time_ns=lambda: SYSTEM.time_ns() + 10**12)
    folder, known = KeyFolder(tmp_path / "keys"), KnownKeys(tmp_path / "keys", later)
    key, token = folder.create("a", ("read",))
    assert known.find(token) == key
    monkeypatch.setattr(Path, "iterdir", lambda path: pytest.fail("the folder is read again"))
    assert known.find(token) == key


def test_a_header_that_was_sent_is_known_until_the_folder_changes(tmp_path: Path) -> None:
    later = replace(SYSTEM, time_ns=lambda: SYSTEM.time_ns() + 10**12)
    folder, known = KeyFolder(tmp_path / "keys"), KnownKeys(tmp_path / "keys", later)
    key, token = folder.create("a", ("read",))
    sent = f"Bearer {token}"
    assert known.find_sent(sent) is None
    assert known.find(token) == key
    known.remember(sent, key)
    assert known.find_sent(sent) == key
    for other in (sent[:-1], sent + "a", sent[:-1] + "\xe9", f"bearer {token}", sent[:27], "", "Bearer pw_"):
        assert known.find_sent(other) is None
    known.remember(f"Bearer  {token}", key)
    assert known.find_sent(f"Bearer  {token}") is None
    _, second = folder.create("b", ("read",))
    assert known.find_sent(sent) is None and known.find(token) == key
    known.remember(sent, key)
    folder.revoke("a")
    assert known.find_sent(sent) is None and known.find(token) is None and known.find(second) is not None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b'{"format": 2}', b'{"format": 1}', b"\xff",
        b'{"format":1,"id":"aaaaaaaaaaaaaaaa","name":"a","scopes":["all"],"sha256":"00","created":1,"expires":null}',
    ],
)  # fmt: skip
def test_damaged_files_are_no_keys(content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, known = KeyFolder(tmp_path / "keys"), KnownKeys(tmp_path / "keys")
    key, token = folder.create("a", ("read",))
    (tmp_path / "keys" / "aaaaaaaaaaaaaaaa.json").write_bytes(content)
    (tmp_path / "keys" / ".tmp-bbbbbbbbbbbbbbbb.json").write_bytes(b"half")
    (tmp_path / "keys" / "notes.txt").write_bytes(b"?")
    with caplog.at_level(logging.ERROR):
        assert (folder.keys(), known.find(token)) == ([key], key)
    assert "aaaaaaaaaaaaaaaa.json' cannot be used" in caplog.text


def test_a_folder_that_cannot_be_read_has_no_keys(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "keys").write_text("a file")
    with caplog.at_level(logging.ERROR):
        assert KnownKeys(tmp_path / "keys").find("pw_" + "a" * 16 + "_" + "a" * 43) is None
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize("step", ["fdopen", "replace", "fsync"])
def test_a_crash_leaves_a_whole_key_or_none(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = KeyFolder(tmp_path / "keys")
    first, token = folder.create("a", ("read",))

    def die(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path if step == "replace" else os, step, die)
        folder.create("b", ("read",))
    assert folder.keys() == [first] and KnownKeys(tmp_path / "keys").find(token) == first
    second, _ = folder.create("b", ("read",))
    assert set(folder.keys()) == {first, second}


def test_many_commands_at_a_time(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path / "keys")
    tokens: list[str] = []

    def make(name: str) -> None:
        tokens.extend(folder.create(name, ("write",))[1] for _ in range(5))

    threads = [threading.Thread(target=make, args=(f"n{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    known = KnownKeys(tmp_path / "keys")
    assert len(folder.keys()) == len(tokens) == 20
    assert all(known.find(token) is not None for token in tokens)


@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "a/b", "é", "a" * 101, "a\n"])
def test_names_that_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="name of a key"):
        KeyFolder(tmp_path).create(name, ("read",))


@pytest.mark.parametrize("scopes", [(), ("all",), ("read", "")])
def test_scopes_that_are_refused(scopes: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="one or several of read, write, deploy"):
        KeyFolder(tmp_path).create("a", scopes)


@given(st.text(max_size=120))
def test_no_text_is_a_key_by_accident(token: str) -> None:
    assert KnownKeys(Path("/nowhere")).find(token) is None


def test_expiry() -> None:
    key = Key("a", "a", frozenset(), b"", 0, 100)
    assert [key.is_expired(now) for now in (0, 99.9, 100, 101)] == [False, False, True, True]
    assert not replace(key, expires_seconds=None).is_expired(1e12)


SECRET = "pw_aaaaaaaaaaaaaaaa_" + "s" * 43
REQUEST = Request(
    "GET", "/search/", f"token={SECRET}", {"authorization": f"Bearer {SECRET}"}, SECRET.encode(), address="10.0.0.1"
)


def test_a_line_says_who_asked_what_and_why_it_was_refused(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Refusals().note(REQUEST, 403, "an unknown key")
        Refusals().note(replace(REQUEST, client=ClientCertificate("me", (), "ab12")), 403, "no permission")
    assert [record.message for record in caplog.records] == [
        "Refused GET '/search/' from 10.0.0.1 with 403: an unknown key",
        "Refused GET '/search/' from 10.0.0.1 with certificate 'me' ab12 with 403: no permission",
    ]


def test_lines_cannot_be_forged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Refusals().note(replace(REQUEST, raw_path="/a\nRefused nobody" + "x" * 1000), 401, "no key")
    (record,) = caplog.records
    assert "\n" not in record.message and len(record.message) < 400


def test_a_flood_of_refusals_is_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    now = [0]
    refusals = Refusals(replace(SYSTEM, monotonic_ns=lambda: now[0]))
    with caplog.at_level(logging.WARNING):
        for _ in range(ACCESS_REFUSALS + 1000):
            refusals.note(REQUEST, 403, "an unknown key")
        assert len(caplog.records) == ACCESS_REFUSALS
        now[0] = int(ACCESS_REFUSALS_SECONDS * 1e9)
        refusals.note(REQUEST, 403, "an unknown key")
    assert [record.message for record in caplog.records[ACCESS_REFUSALS:]] == [
        "1000 more requests were refused, without a line for each",
        "Refused GET '/search/' from 10.0.0.1 with 403: an unknown key",
    ]


def test_secrets_are_not_shown_where_a_request_is_printed() -> None:
    assert SECRET not in repr(replace(REQUEST, query=""))


@pytest.mark.parametrize(
    ("value", "token"),
    [
        (None, None),
        ("", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer   ", None),
        ("Basic abc", None),
        ("Bearerabc", None),
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER  abc ", "abc"),
        ("Bearer abc, Bearer def", "abc, Bearer def"),
    ],
)
def test_the_token_of_a_header(value: str | None, token: str | None) -> None:
    assert bearer_token({} if value is None else {"authorization": value}) == token
