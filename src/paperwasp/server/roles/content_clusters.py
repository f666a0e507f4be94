"""The content clusters of all applications, and how they change with their application without a moment of absence.

A change has three steps. The generation is chosen after the first, and the containers swap after the second:

    stage    clusters that are new open; the others see whether they can have the new schemas, and log nothing
    adopt    they have the new schemas: the new layout is logged; document types that are removed are still served
    settle   what goes is gone: document types and clusters that the application has no more, with their documents

So what is put while a generation is staged is kept whole by the old schemas, whether it is chosen or given up. Once it
is chosen, clusters only go forward: where one cannot adopt it, those that have keep it, and `adopt` is called again.
To go back would lose what a field, an index or a document type of the new schemas has been given meanwhile.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from paperwasp.application.model import ContentCluster
from paperwasp.base.file_snapshot import SourceFile, below, close_all
from paperwasp.base.records import replace
from paperwasp.coordination.messenger import Messenger

if TYPE_CHECKING:
    from paperwasp.content.upkeep.resources import Probe
    from paperwasp.coordination.operation_log import OpenLog
    from paperwasp.server.roles.content_cluster import RunningCluster

_LOG: Final = logging.getLogger("paperwasp.service")


class ContentClusters:
    """The content clusters of this process. Any threads, but one at a time for an application."""

    def __init__(
        self,
        directory: Path,
        messenger: Messenger,
        open_log: OpenLog,
        repair: bool = False,
        probe: Probe | None = None,
    ) -> None:
        """`probe` measures what all of them use; without it, of this directory."""
        self._directory = directory
        self._messenger = messenger
        self._open_log = open_log
        self._repair = repair
        self._probe = probe
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str], RunningCluster] = {}
        self._staged: dict[str, list[str]] = {}
        """By application, the clusters that were opened for a generation which is not chosen yet."""

    def stage(self, application: str, generation: int, clusters: Sequence[ContentCluster]) -> None:
        """Open the clusters that are new, and check that the others can serve their new schemas.

        New is a cluster of which there is nothing on disk. Errors: those of opening, and those that `adopt` would raise
        now; then all is as before.
        """
        running = self._ids(application)
        self._staged[application] = [cluster.id for cluster in clusters if cluster.id not in running]
        try:
            new = [cluster for cluster in clusters if not (self._directory / application / cluster.id).exists()]
            for cluster in clusters:
                found = self._get_open(application, cluster.id)
                found.check(generation, _extend(found.cluster, cluster))
            for cluster in new:
                self._get_open(application, cluster.id).configure(generation, cluster)
        except BaseException:
            self.abandon(application)
            raise

    def abandon(self, application: str) -> None:
        """Stop the clusters that were opened for the staged generation; nothing is deleted."""
        for cluster_id in self._staged.pop(application, ()):
            try:
                if cluster_id in self._ids(application):
                    self._stop(application, cluster_id)
            except Exception:
                _LOG.exception("Content cluster '%s' of %s did not stop as it should", cluster_id, application)

    def adopt(self, application: str, generation: int, clusters: Sequence[ContentCluster]) -> None:
        """All of `clusters` serve their schemas, and still the document types that go.

        Call it once the generation is chosen: fields that go, and values that do not fit a new type, are gone. Where it
        raises, another call goes on with the clusters that have not changed yet.
        """
        self._staged.pop(application, None)
        for cluster in clusters:
            running = self._get_open(application, cluster.id)
            if running.generation != generation:
                running.configure(generation, _extend(running.cluster, cluster))

    def settle(self, application: str, generation: int, clusters: Sequence[ContentCluster]) -> None:
        """The application has these clusters with these document types; all others go, with their documents.

        What cannot go now goes with the next change or start: that is no reason to try the change again.
        """
        for cluster in clusters:
            running = self._get_open(application, cluster.id)
            if _extend(running.cluster, cluster) is not cluster:
                try:
                    running.configure(generation, cluster)
                except Exception:
                    what = "document types that it should not"
                    _LOG.exception("Content cluster '%s' of %s still has %s", cluster.id, application, what)
        self._drop_clusters(application, {cluster.id for cluster in clusters})

    def restart(self, application: str, cluster_id: str) -> None:
        """Stops the cluster's node and opens it again; requests wait. Errors: those of opening it."""
        self._running[application, cluster_id].restart()

    def clear(self, application: str) -> None:
        """All content clusters of the application forget their documents; requests wait. Errors: those of opening a
        cluster."""
        for cluster_id in self._ids(application):
            self._get_open(application, cluster_id).clear()

    def open_files(self) -> list[SourceFile]:
        """The files of all content clusters, open, each cluster's as of one moment, with names below the folder of
        clusters. Those of applications that could not be restored are among them. Errors: OSError where a cluster is
        deleted meanwhile; those of the clusters."""
        from paperwasp.content.checkpoints.node_files import open_stopped_cluster

        files: list[SourceFile] = []
        try:
            for directory in sorted(path for path in self._directory.glob("*/[!.]*") if path.is_dir()):
                application, cluster_id = directory.parent.name, directory.name
                with self._lock:
                    running = self._running.get((application, cluster_id))
                found = running.open_files() if running is not None else open_stopped_cluster(directory)
                files += below(f"{application}/{cluster_id}", found)
        except BaseException:
            close_all(files)
            raise
        return files

    def stop(self) -> None:
        """Ends all: what waits is applied, and checkpoints are written."""
        for cluster in self._running.values():
            cluster.stop()

    def _get_open(self, application: str, cluster_id: str) -> RunningCluster:
        """The cluster, open: also one that is new, and one whose restart failed. Errors: those of opening it."""
        with self._lock:
            running = self._running.get((application, cluster_id))
        if running is None:
            directory = self._directory / application / cluster_id
            running = self._open(directory, application, cluster_id)
            with self._lock:
                self._running[application, cluster_id] = running
        elif not running.is_open:
            self.restart(application, cluster_id)
        return running

    def _open(self, directory: Path, application: str, cluster_id: str) -> RunningCluster:
        from paperwasp.content.upkeep.resources import SystemProbe
        from paperwasp.server.roles.content_cluster import RunningCluster

        self._probe = self._probe or SystemProbe(self._directory)
        return RunningCluster(
            directory, application, cluster_id, self._messenger, self._open_log, self._repair, self._probe
        )

    def _ids(self, application: str) -> list[str]:
        with self._lock:
            return [cluster_id for owner, cluster_id in self._running if owner == application]

    def _stop(self, application: str, cluster_id: str, *, checkpoint: bool = True) -> None:
        with self._lock:
            running = self._running.pop((application, cluster_id))
        running.stop(checkpoint=checkpoint)

    def _drop_clusters(self, application: str, kept: set[str]) -> None:
        for cluster_id in self._ids(application):
            if cluster_id not in kept:
                try:
                    self._stop(application, cluster_id, checkpoint=False)  # that would be a file a field, for nothing
                except Exception:
                    _LOG.exception("Content cluster '%s' of %s did not stop as it should", cluster_id, application)
        folder = self._directory / application
        for directory in folder.iterdir() if folder.is_dir() else ():
            if directory.name not in kept:
                shutil.rmtree(directory, ignore_errors=True)
        if not kept:
            with suppress(OSError):
                folder.rmdir()


def _extend(before: ContentCluster | None, after: ContentCluster) -> ContentCluster:
    """Adds to `after` the document types that only `before` has; returns `after` itself where there are none."""
    if before is None or before.schemas.keys() <= after.schemas.keys():
        return after
    kept = tuple(document for document in before.declared.documents if document.type not in after.schemas)
    declared = replace(after.declared, documents=(*after.declared.documents, *kept))
    return replace(after, declared=declared, schemas=MappingProxyType({**before.schemas, **after.schemas}))
