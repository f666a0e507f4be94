"""Posting JSON to an endpoint that overloads, breaks, hangs, drips, closes, or answers no JSON; and its secrets.

A secret is a file of a folder, else an environment variable; never anything outside the folder.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.components.json_client import Endpoint, JsonClient, check_url, find_secret, secret
from paperwasp.errors import InvalidInput, Overload, PaperwaspError, Timeout, Unavailable
from tests.components.stand_in import Asked, Reply, stand_in


class Clock:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def client(self, url: str, **settings: Any) -> JsonClient:
        return JsonClient(Endpoint(url, "the model", **settings), lambda: self.now, self.pause)


def replies(*given: Reply | object) -> Callable[[Asked], Reply | object]:
    """Answers with these, one after the other, the last one again and again."""
    left = list(given)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def silent(says: bytes = b"") -> Iterator[str]:
    """The address of one who takes a connection, says that much and nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()
        taken: list[socket.socket] = []

        def serve() -> None:
            try:
                while not ended.is_set():
                    taken.append(server.accept()[0])
                    taken[-1].sendall(says)
            except OSError:
                pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/embed"
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in taken:
                each.close()


def test_posts_json_and_gives_that_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERWASP_SECRET_MY_KEY", " sesame\n")
    with stand_in(lambda asked: {"you said": asked.body}) as server:
        client = Clock().client(f"{server.url}/v1/embeddings?x=1", secret_name="my-key")
        assert [client.post({"input": [text]}) for text in "ab"] == [{"you said": {"input": [text]}} for text in "ab"]
        client.close()
    assert {each.path for each in server.asked} == {"/v1/embeddings?x=1"}
    assert {each.headers["authorization"] for each in server.asked} == {"Bearer sesame"}
    assert {each.headers["content-type"] for each in server.asked} == {"application/json"}


def test_connections_are_used_again() -> None:
    ports = set()
    with stand_in(lambda asked: asked.headers["host"]) as server:
        client = Clock().client(server.url)
        for _ in range(3):
            client.post({})
            (connection,) = client._pool.idle
            ports.add(connection.sock.getsockname())
        client.close()
    assert len(ports) == 1


def test_a_connection_that_was_closed_meanwhile_is_opened_again_without_a_pause() -> None:
    with stand_in(replies(1)) as server:
        clock = Clock()
        client = clock.client(server.url, max_retries=0)
        client.post({})
        (connection,) = client._pool.idle
        connection.sock.shutdown(socket.SHUT_RDWR)
        assert client.post({}) == 1 and clock.pauses == []
        client.close()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_after_longer_and_longer_pauses(status: int) -> None:
    with stand_in(replies(Reply({}, status), Reply({}, status), Reply({}, status), "at last")) as server:
        clock = Clock()
        assert clock.client(server.url).post({}) == "at last"
    assert clock.pauses == [0.1, 0.2, 0.4]


def test_pauses_have_a_longest() -> None:
    with stand_in(replies(Reply({}, 503))) as server, pytest.raises(Unavailable):
        clock = Clock()
        clock.client(server.url, max_retries=8).post({})
    assert clock.pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_the_endpoint_may_ask_for_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    date = formatdate(1_700_000_020, usegmt=True)
    asks = [Reply({}, 429, {"Retry-After": each}) for each in ("7", date, "soon")]
    with stand_in(replies(*asks, "at last")) as server:
        clock = Clock()
        assert clock.client(server.url).post({}) == "at last"
    assert clock.pauses == [7.0, 20.0, 0.4]


def test_no_pause_goes_beyond_the_deadline() -> None:
    with stand_in(replies(Reply({"error": "slow down"}, 429, {"Retry-After": "30"}))) as server:
        clock = Clock()
        with pytest.raises(Overload, match=rf"^the model: {server.url} answered 429: slow down$"):
            clock.client(server.url, timeout_seconds=20.0).post({})
        with pytest.raises(Overload):
            clock.client(server.url).post({}, timeout_seconds=20.0)
    assert clock.pauses == [] and len(server.asked) == 2


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (Reply({"error": {"message": "too long"}}, 400), InvalidInput, "answered 400: too long"),
        (Reply({"detail": "too long"}, 422), InvalidInput, "answered 422: too long"),
        (Reply({"error": "too many", "error_type": "x"}, 413), InvalidInput, "answered 413: too many"),
        (Reply({"message": "who"}, 403), Unavailable, "answered 403: who"),
        (Reply(b"<html>", 404), Unavailable, "answered 404: <html>"),
        (Reply(b"", 302, {"Location": "http://127.0.0.1:1/"}), Unavailable, "answered 302"),
        (Reply({"other": 1}, 500), Unavailable, 'answered 500: {"other":1}'),
        (Reply(b"{"), Unavailable, "answered no JSON: "),
        (Reply(raw=b"SSH-2.0-OpenSSH\r\n"), Unavailable, "does not answer: SSH-2.0-OpenSSH"),
        (Reply(b"no", 501, {"Connection": "close"}), Unavailable, "answered 501: no"),
        (Reply(raw=b""), Unavailable, "does not answer: Remote end closed connection without response"),
        (Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), Unavailable, "does not answer: IncompleteRead"),
    ],
)
def test_what_is_wrong_is_told(reply: Reply, error: type[PaperwaspError], message: str) -> None:
    with stand_in(replies(reply)) as server, pytest.raises(error) as raised:
        Clock().client(server.url).post({})
    assert type(raised.value) is error
    assert raised.value.message.startswith(f"the model: {server.url} {message}")


def test_a_key_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERWASP_SECRET_KEY", "sk-123")
    reply = Reply({"error": {"message": "Incorrect key: sk-123."}}, 401)
    with stand_in(replies(reply)) as server, pytest.raises(Unavailable) as raised:
        Clock().client(server.url, secret_name="key").post({})
    assert raised.value.message == (
        f"the model: {server.url} answered 401: Incorrect key: …. (is the secret 'key' right?)"
    )


def test_nobody_is_asked_without_the_secret() -> None:
    with stand_in(replies(1)) as server, pytest.raises(Unavailable, match="There is no secret 'none': it would be a"):
        Clock().client(server.url, secret_name="none").post({})
    assert server.asked == []


def test_an_endpoint_that_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/"
    clock = Clock()
    with pytest.raises(Unavailable, match=r"does not answer: .*refused"):
        clock.client(url).post({})
    assert clock.pauses == [0.1, 0.2, 0.4]


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_an_endpoint_that_hangs(says: bytes) -> None:
    with silent(says) as url, pytest.raises(Timeout, match=rf"^the model: {url} did not answer in 0.05 seconds$"):
        JsonClient(Endpoint(url, "the model")).post({}, timeout_seconds=0.05)


def test_each_wait_for_bytes_has_only_what_is_left() -> None:
    """One who drips: after each byte less time is left, and none after the third."""
    clock = Clock()

    def left() -> float:
        clock.now += 1.0
        return clock.now

    with silent(b"HTTP/1.1 200 OK\r\n") as url:
        client = JsonClient(Endpoint(url, "the model", timeout_seconds=3.0), left)
        with pytest.raises(Timeout):
            client.post({})


def test_an_answer_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REMOTE_ANSWER_BYTES", 10)
    with stand_in(replies("x" * 9)) as server, pytest.raises(Unavailable, match="the answer has more than 10 bytes"):
        Clock().client(server.url).post({})


def test_a_chunk_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A size below 0 would be read until the connection ends."""
    monkeypatch.setattr(limits, "REMOTE_ANSWER_BYTES", 10)
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + b"x" * (2 << 20)
    with stand_in(replies(Reply(raw=raw))) as server, pytest.raises(Unavailable, match="does not answer: "):
        Clock().client(server.url, max_retries=0).post({})


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=100).map(lambda rest: b"HTTP/1.1 200 OK\r\n" + rest),
        st.binary(max_size=100).map(lambda rest: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + rest),
        st.binary(max_size=100).map(lambda rest: b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + rest),
    )
)
def test_whatever_is_answered_is_a_value_or_an_error_of_ours(raw: bytes) -> None:
    with stand_in(replies(Reply(raw=raw))) as server:
        client = Clock().client(server.url, max_retries=0)
        try:
            client.post({}, timeout_seconds=20)
        except PaperwaspError as error:
            assert error.message.startswith("the model: ")
        finally:
            client.close()


def test_so_many_requests_at_a_time() -> None:
    under_way = threading.Semaphore(2)
    together, ended = threading.Event(), threading.Event()

    def answer(asked: Asked) -> object:
        assert under_way.acquire(blocking=False), "more than two at a time"
        if not under_way.acquire(blocking=False):
            together.set()
        else:
            under_way.release()
        ended.wait(20)
        under_way.release()
        return asked.body

    found: list[Any] = []
    with stand_in(answer) as server:
        client = JsonClient(Endpoint(server.url, "the model", connections=2))
        threads = [threading.Thread(target=lambda each=each: found.append(client.post(each))) for each in range(6)]
        for thread in threads:
            thread.start()
        assert together.wait(20)
        with pytest.raises(Timeout, match=r"did not answer in 0\.01 seconds"):
            client.post(6, timeout_seconds=0.01)
        ended.set()
        for thread in threads:
            thread.join()
        client.close()
    assert sorted(found) == list(range(6))


@pytest.mark.parametrize(
    "url",
    ["", "host/x", "ftp://host/", "http://", "http://h:99999/", "http://a:b@h/", "http://h/ä", "http://h/a b\r\n"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="is not an address such as https://host"):
        check_url(url)


def test_a_file_goes_before_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "voyage_api-key").write_text("from the file\n")
    monkeypatch.setenv("PAPERWASP_SECRETS", str(tmp_path))
    monkeypatch.setenv("PAPERWASP_SECRET_VOYAGE_API_KEY", "from the variable")
    assert secret("voyage_api-key") == "from the file"
    (tmp_path / "voyage_api-key").write_text(" \n")
    assert secret("voyage_api-key") == "from the variable"
    monkeypatch.delenv("PAPERWASP_SECRET_VOYAGE_API_KEY")
    (tmp_path / "voyage_api-key").write_bytes(b"\xff")
    assert find_secret("voyage_api-key") is None


@pytest.mark.parametrize("name", ["", "../key", "a/b", ".hidden", "a\0b", "x" * 201])
def test_names_that_are_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("outside")
    (tmp_path / "secrets").mkdir()
    monkeypatch.setenv("PAPERWASP_SECRETS", str(tmp_path / "secrets"))
    assert find_secret(name) is None


def test_where_it_would_be_is_told() -> None:
    with pytest.raises(Unavailable, match=r"^There is no secret 'my.key': .* or the variable PAPERWASP_SECRET_MY_KEY$"):
        secret("my.key")
