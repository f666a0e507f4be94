"""Sockets of the event loop: they read, write and fail as Python's own do."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from paperwasp.http.loop_socket import LoopSocket

Pair = tuple[LoopSocket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    made = LoopSocket.of(ours)
    assert ours.fileno() == -1 and not made.getblocking()
    with made, theirs:
        yield made, theirs


def test_what_comes_is_read_into_a_buffer(pair: Pair) -> None:
    ours, theirs = pair
    buffer = bytearray(8)
    with pytest.raises(BlockingIOError):
        ours.recv_into(buffer)
    theirs.sendall(b"0123456789")
    assert ours.recv_into(memoryview(buffer)[2:5]) == 3 and bytes(buffer) == b"\0\x00012\0\0\0"
    assert ours.recv_into(buffer, 2) == 2 and ours.recv_into(buffer, 0, socket.MSG_PEEK) == 5
    assert ours.recv_into(buffer) == 5 and bytes(buffer[:5]) == b"56789"
    theirs.shutdown(socket.SHUT_WR)
    assert ours.recv_into(buffer) == 0
    with pytest.raises((BufferError, TypeError)):
        ours.recv_into(b"constant")


@pytest.mark.parametrize("size_bytes", [1, 60_000, 1_000_000])
def test_what_the_system_takes_is_written(pair: Pair, size_bytes: int) -> None:
    ours, theirs = pair
    data = bytes(number % 251 for number in range(size_bytes))
    sent = got = 0
    while sent < size_bytes:
        try:
            sent += ours.send(memoryview(data)[sent:])
        except BlockingIOError:
            piece = theirs.recv(65_536)
            assert piece == data[got : got + len(piece)]
            got += len(piece)
    assert ours.send(bytearray(b"")) == 0
    ours.close()
    while piece := theirs.recv(65_536):
        assert piece == data[got : got + len(piece)]
        got += len(piece)
    assert got == size_bytes


def test_a_lost_peer_is_an_error(pair: Pair) -> None:
    ours, theirs = pair
    theirs.close()
    with pytest.raises(BrokenPipeError):
        ours.send(b"a")
    ours.close()
    with pytest.raises(OSError, match="descriptor"):
        ours.send(b"a")
    with pytest.raises(OSError, match="descriptor"):
        ours.recv_into(bytearray(1))
