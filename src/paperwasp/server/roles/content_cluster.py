"""One content cluster of this process: its log, its node, its address, its chores, and the threads of its queries.

Threads: every method is called by one thread at a time; messages come from anywhere.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from paperwasp import limits
from paperwasp.application.model import ContentCluster
from paperwasp.application.services_model import ClusterNode
from paperwasp.base.file_snapshot import SourceFile, below, close_all
from paperwasp.content.addresses import address_of
from paperwasp.content.checkpoints.checkpoint import check_readable
from paperwasp.content.checkpoints.node_files import open_node_files, open_stopped_cluster
from paperwasp.content.housekeeping import Chore, Housekeeping, prune, recover, refresh_posting_lists
from paperwasp.content.node import ContentNode
from paperwasp.content.upkeep.garbage_collection import Collection, GarbageCollector
from paperwasp.content.upkeep.resources import FeedGate, Probe, SystemProbe, limits_of
from paperwasp.content.upkeep.row_filling import RowFilling
from paperwasp.coordination.messages.documents import ApplyChanges, ApplyRequest
from paperwasp.coordination.messenger import Messenger, Reply
from paperwasp.coordination.operation_log import OpenLog
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.document.selection import fields_of, negate, parse_selection
from paperwasp.errors import InternalError, LogDamage, Overload, PaperwaspError
from paperwasp.search.query_resources import Helpers
from paperwasp.search.served import ServedSchemas
from paperwasp.search.text_query import RouteQuery, TextQuery
from paperwasp.server.roles.content_service import ContentService
from paperwasp.server.roles.query_threads import query_threads

FORGOTTEN: Final = ".forgotten-"
"""How the names of folders begin whose content is being deleted."""


class RunningCluster:
    """A content cluster that answers at its address, from when it is made until it is stopped.

    It has query threads of its own: when they have ended, nothing reads the node any more.
    """

    def __init__(
        self,
        directory: Path,
        application: str,
        cluster_id: str,
        messenger: Messenger,
        open_log: OpenLog,
        repair: bool = False,
        probe: Probe | None = None,
    ) -> None:
        """Recovers; may take a while. `probe` measures what is used; without it, of this directory.

        Errors: Corruption, …
        """
        self.directory: Final = directory
        self._address = address_of(application, cluster_id)
        self._messenger = messenger
        self._open_log = open_log
        self._probe = probe or SystemProbe(directory)
        self._gate = FeedGate(cluster_id)
        self._housekeeping = Housekeeping(())
        self.is_open = False
        self.generation = 0
        """The generation that it serves; 0: none, or a part of one."""
        self._configured: tuple[int, ContentCluster] | None = None
        """The last generation that its log has taken, and what it is to serve of that: it never goes back."""
        self._open(repair)
        messenger.serve(self._address, self._service.handle, self._service.handle_all)

    def _open(self, repair: bool) -> None:
        if not repair:
            _check_log_is_there(self.directory)
        check_readable(self.directory / "node")  # before the log is opened, which may cut a torn tail off
        self._log = self._open_log(self.directory / "log", repair)
        try:
            self._node = ContentNode(self.directory / "node", self._log, repair=repair)
        except BaseException:
            self._log.close()
            raise
        self._pool = WorkerPool("query")
        self._helpers = Helpers(self._pool)
        self._served = ServedSchemas(self._helpers)
        self._service = ContentService(self._node, self._pool, self._served, self._gate)
        self.generation = 0
        self.is_open = True

    @property
    def cluster(self) -> ContentCluster | None:
        """What it was configured with last; None: nothing yet."""
        return None if self._configured is None else self._configured[1]

    def check(self, generation: int, cluster: ContentCluster) -> None:
        """Errors: what `configure` would refuse. Changes nothing."""
        self._node.check(generation, cluster.schemas, _modes(cluster))

    def configure(self, generation: int, cluster: ContentCluster) -> None:
        """Serves these schemas when it returns. The documents of types that are not among them are gone.

        Where it raises, another call goes on from there: a layout that is logged already is not logged again.
        """
        self.generation = 0
        key = _node_of(cluster).distribution_key
        threads, most_of_query = query_threads(cluster.declared.tuning)
        self._pool.resize(threads)
        self._service.resize(threads, most_of_query)
        self._helpers.configure(most_of_query)
        try:
            self._node.configure(generation, cluster.schemas, _modes(cluster), key)
        finally:
            if self._node.generation == generation:
                self._configured = generation, cluster
        view = self._node.reader.view()
        self._served.compile_all(view.schemas, view.modes)
        self._keep_house(cluster)
        self.generation = generation

    def _keep_house(self, cluster: ContentCluster) -> None:
        """Restarts the chores; the limits of resources are in force when it returns."""
        self._housekeeping.stop()
        declared = cluster.declared
        node = _node_of(cluster)
        self._gate.configure(
            limits_of(declared.tuning, declared.max_document_size_bytes), node.host, node.distribution_key
        )
        self._housekeeping = Housekeeping(list(self._chores(cluster)))
        self._measure()
        self._housekeeping.start()

    def _chores(self, cluster: ContentCluster) -> Iterator[Chore]:
        yield self._measure
        yield partial(recover, self._node)
        yield partial(prune, self._node)
        yield partial(refresh_posting_lists, self._node.reader)
        yield RowFilling(self._node.reader)
        yield self._node.graph_building()
        if (collection := collection_of(cluster)) is not None:
            yield GarbageCollector(self._node.reader, self._node.operations, collection)

    def _measure(self) -> float:
        self._gate.observe(self._probe())
        return limits.RESOURCE_SAMPLE_SECONDS

    def restart(self) -> None:
        """Stops the node and opens it again, as it was configured last; messages wait for it.

        Errors: those of opening. Then all messages are refused, until another restart succeeds.
        """
        self._replace_node(self._close)

    def clear(self) -> None:
        """Forgets all documents: a new node, without any, serves from now on; messages wait for it.

        Errors: as of `restart`.
        """
        forgotten = Path(tempfile.mkdtemp(prefix=FORGOTTEN, dir=self.directory.parent))

        def forget() -> None:
            self._close(checkpoint=False)
            self.directory.rename(forgotten / "cluster")

        self._replace_node(forget)
        threading.Thread(target=shutil.rmtree, args=(forgotten, True), name="forgetting", daemon=True).start()

    def _replace_node(self, close: Callable[[], None]) -> None:
        waiting = _Waiting()
        self._messenger.replace(self._address, waiting.handle)
        try:
            close()
            self._open(repair=False)
            if self._configured is not None:
                self.configure(*self._configured)
        except Exception as error:
            self._close()
            waiting.refuse(InternalError(f"The content cluster could not be opened again: {error}"))
            raise
        waiting.release(self._service.handle)  # before others come to the service: operations keep their order
        self._messenger.replace(self._address, self._service.handle, self._service.handle_all)

    def open_files(self) -> list[SourceFile]:
        """The files of the cluster, open, as of one moment between two batches, with names below its folder.

        All operations that are answered are in them. The writer waits while files are opened, and not longer.
        """
        if not self.is_open:
            return open_stopped_cluster(self.directory)
        files: list[SourceFile] = []

        def open_all() -> None:
            files.extend(below("log", self._log.open_files()))  # first: what a checkpoint trims meanwhile is open
            files.extend(below("node", open_node_files(self.directory / "node")))

        try:
            self._node.operations.run(open_all)
        except BaseException:
            close_all(files)
            raise
        return files

    def stop(self, *, checkpoint: bool = True) -> None:
        """Takes no more messages, answers those that it has, writes a checkpoint unless that is not wanted."""
        self._messenger.withdraw(self._address)
        self._close(checkpoint=checkpoint)

    def _close(self, *, checkpoint: bool = True) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._housekeeping.stop()
        self._service.close()
        self._pool.shutdown()
        self._node.stop(checkpoint=checkpoint)
        self._log.close()


def _check_log_is_there(directory: Path) -> None:
    """The log is made durable before the node is made, so where there is a node there is a log. Errors: Corruption."""
    log = directory / "log"
    if (directory / "node").is_dir() and not (log.is_dir() and any(log.iterdir())):
        raise LogDamage(f"{log}: the operation log is missing, with all that came after the last checkpoint")


class _Waiting:
    """Keeps messages until there is somebody to serve them. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: list[tuple[Any, Reply]] = []
        self._size_bytes = 0
        """Of the bodies of the operations among them."""
        self._handler: Any = None

    def handle(self, message: Any, reply: Reply) -> None:
        """A query for a compiled plan, or for a route, does not wait: it is asked again the general way, whose time is
        looked at. Errors: Overload where too many wait."""
        with self._lock:
            if self._handler is None:
                if type(message) in (TextQuery, RouteQuery):
                    reply(None)
                    return
                size_bytes = message.size_bytes if type(message) in (ApplyRequest, ApplyChanges) else 0
                is_full = self._size_bytes > 0 and self._size_bytes + size_bytes > limits.OPERATION_QUEUE_BYTES
                if is_full or len(self._messages) >= limits.RESTART_WAITING_MESSAGES:
                    raise Overload("the content cluster is being restarted, and too many requests wait for it already")
                self._messages.append((message, reply))
                self._size_bytes += size_bytes
                return
        self._handler(message, reply)

    def release(self, handler: Any) -> None:
        """Hands on what waits, in its order, and whatever still comes."""
        with self._lock:
            for message, reply in self._messages:
                try:
                    handler(message, reply)
                except Exception as error:
                    reply(error)
            self._handler = handler

    def refuse(self, error: PaperwaspError) -> None:
        """Answers all that waits, and all that comes, with an error."""

        def refuse(_: Any, reply: Reply) -> None:
            reply(error)

        self.release(refuse)


def _node_of(cluster: ContentCluster) -> ClusterNode:
    nodes = cluster.declared.nodes
    return nodes[0] if nodes else ClusterNode()


def _modes(cluster: ContentCluster) -> dict[str, str]:
    return {document.type: document.mode for document in cluster.declared.documents}


def collection_of(cluster: ContentCluster) -> Collection | None:
    """The garbage collection that services.xml configures; None: nothing is collected.

    Documents stay that match both the selection of the cluster and that of their type.
    """
    declared = cluster.declared
    selected = tuple(document.type for document in declared.documents if document.selection or declared.selection)
    if not (declared.garbage_collection and declared.garbage_collection_interval_s and selected):
        return None
    kept = " or ".join(
        f"({document.type} and ({document.selection}))" if document.selection else document.type
        for document in declared.documents
    )
    belongs = parse_selection(f"({declared.selection}) and ({kept})" if declared.selection else kept)
    is_imported = any(
        cluster.schemas[document_type].fields[field].imported is not None for document_type, field in fields_of(belongs)
    )
    selection = str(negate(belongs))
    interval_s = declared.garbage_collection_interval_s
    return Collection(selected, selection, interval_s, None if is_imported else selection)
