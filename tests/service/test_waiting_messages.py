"""Messages to a content cluster that is restarted: they wait, in their order, and not without bounds."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.coordination.messages.documents import ApplyRequest
from paperwasp.coordination.messenger import BatchHandler, EmbeddedMessenger, Handler
from paperwasp.document.operations import Outcome
from paperwasp.errors import Overload
from paperwasp.server.process import open_file_log
from paperwasp.server.roles.content_cluster import RunningCluster, _Waiting
from tests.content.nodes import doc_id, put
from tests.server.roles.test_query_threads import cluster


class Restarting(EmbeddedMessenger):
    """Sends an older put when messages begin to wait, and a newer one as soon as the cluster is served again."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Any] = []
        self.done = Event()

    def replace(self, address: str, handler: Handler, batch_handler: BatchHandler | None = None) -> None:
        super().replace(address, handler, batch_handler)
        is_waiting = batch_handler is None
        handler(ApplyRequest(put("a", "thing", size=1 if is_waiting else 2)), self._take)

    def _take(self, answer: object) -> None:
        self.answers.append(answer)
        if len(self.answers) == 2:
            self.done.set()


def test_operations_keep_their_order_over_a_restart(tmp_path: Path) -> None:
    messenger = Restarting()
    running = RunningCluster(tmp_path / "things", "app", "things", messenger, open_file_log)
    try:
        running.configure(1, cluster(""))
        running.restart()
        assert messenger.done.wait(30)
        assert messenger.answers == [Outcome(False), Outcome(True)]
        fields = running._node.reader.get(doc_id("a", "thing"))
        assert fields is not None and b'"size":2' in fields
    finally:
        running.stop()


def test_operations_that_wait_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OPERATION_QUEUE_BYTES", 100)
    waiting, answers = _Waiting(), list[object]()
    waiting.handle(ApplyRequest(put("a"), 101), answers.append)
    with pytest.raises(Overload, match="is being restarted, and too many requests wait"):
        waiting.handle(ApplyRequest(put("b"), 1), answers.append)
    served: list[object] = []
    waiting.release(lambda message, reply: served.append(message))
    waiting.handle(ApplyRequest(put("c"), 1), answers.append)
    assert [message.operation.id.text[-1] for message in served if isinstance(message, ApplyRequest)] == ["a", "c"]
