"""The applications that run here: each one's content clusters and containers change as one.

    stage    bind ports that are new; open content clusters that are new, and check that the others can change
    commit   content has the new schemas → containers swap → content drops the document types and clusters that go

A generation is staged beside the one that is served, and committed once it is chosen. Until then nothing is changed
for those who ask by the old configuration, and nothing of what they put is lost if it is given up. They find its
ports, clusters and document types until the swap; from the first step of the commit, a document type has its new
schema, and a field or rank profile that it has no more is gone for the old containers as well.
A commit only goes forward, since the generation is chosen: what fails is tried again from where it stood, and the
former containers serve meanwhile.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from paperwasp.application.model import ApplicationModel
from paperwasp.configserver import Activation, ApplicationId, ServiceAddress
from paperwasp.errors import NotFound
from paperwasp.server.roles.containers import Containers, StagedContainers
from paperwasp.server.roles.content_clusters import ContentClusters
from paperwasp.server.roles.ports import container_of

_LOG: Final = logging.getLogger("paperwasp.service")
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class StagedGeneration(Struct, frozen=True):
    """A generation of an application that is ready beside the one that is served."""

    activation: Activation
    containers: StagedContainers


class Applications:
    """Makes real what is active. Any threads; changes and restarts of an application wait for each other."""

    def __init__(self, content: ContentClusters, containers: Containers, host: str) -> None:
        self._content = content
        self._containers = containers
        self._host = host
        self._hosts: Final = (host, *_LOCAL, socket.gethostname())
        self._models: dict[str, ApplicationModel] = {}
        self._locks: dict[str, threading.Lock] = {}
        self.after_next_change: Callable[[], None] | None = None
        """Called once, when an application has changed."""

    def check(self, application: ApplicationId, model: ApplicationModel) -> None:
        """Errors: Conflict, PortTaken where the application could not have the ports that it asks for."""
        self._containers.check(str(application), model)

    def stage(self, activation: Activation) -> StagedGeneration:
        """Make ready what the generation needs beside what is served: ports that are bound, content that can change.

        Errors: Conflict, PortTaken, those of the content clusters; then all is as before.
        """
        name, model = str(activation.application), activation.model
        with self._lock_of(name):
            containers = self._containers.stage(name, model)
            try:
                self._content.stage(name, activation.generation, model.content_clusters)
            except BaseException:
                self._containers.abandon(containers)
                raise
        return StagedGeneration(activation, containers)

    def abandon(self, change: StagedGeneration) -> None:
        """Give up the staged generation; all is as before."""
        name = str(change.activation.application)
        with self._lock_of(name):
            self._content.abandon(name)
            self._containers.abandon(change.containers)

    def commit(self, change: StagedGeneration) -> None:
        """Serve the staged generation; call it once that is chosen.

        Where it raises, stage the generation again and commit that: it goes on from where it stood.
        """
        activation = change.activation
        name, model = str(activation.application), activation.model
        with self._lock_of(name):
            try:
                self._content.adopt(name, activation.generation, model.content_clusters)
                self._containers.commit(
                    change.containers, activation.generation, activation.application.application, model
                )
            except BaseException:
                self._containers.abandon(change.containers)
                raise
            self._content.settle(name, activation.generation, model.content_clusters)
            if activation.is_deletion:
                self._models.pop(name, None)
            else:
                self._models[name] = model
        _LOG.info("Application %s serves generation %d", name, activation.generation)
        after, self.after_next_change = self.after_next_change, None
        if after is not None:
            after()

    def clear(self, application: ApplicationId) -> None:
        """Forgets all documents of the application, as if none had ever been fed. Errors: NotFound; those of opening a
        content cluster again."""
        with self._lock_of(str(application)):
            self._model_of(str(application))
            self._content.clear(str(application))

    def restart(
        self, application: ApplicationId, hostname: str | None, cluster_id: str | None, cluster_type: str | None
    ) -> None:
        """Restarts the clusters that fit; None fits all. Errors: NotFound; those of opening a cluster again."""
        name = str(application)
        with self._lock_of(name):
            for role in self._roles(self._model_of(name)):
                fits = cluster_id in (None, role.cluster_id) and cluster_type in (None, role.type)
                if fits and (hostname is None or hostname in role.hosts or hostname in self._hosts):
                    role.restart(name, role.cluster_id)
                    _LOG.info("Restarted %s cluster '%s' of application %s", role.type, role.cluster_id, name)

    def _model_of(self, name: str) -> ApplicationModel:
        """Errors: NotFound."""
        model = self._models.get(name)
        if model is None:
            raise NotFound(f"Unknown application id '{name}'")
        return model

    def _lock_of(self, name: str) -> threading.Lock:
        """Held by whatever changes what runs of an application: nodes, pools and ports are used by one at a time."""
        return self._locks.setdefault(name, threading.Lock())

    def _roles(self, model: ApplicationModel) -> Iterator[_Role]:
        for cluster in model.content_clusters:
            hosts = frozenset(node.host for node in cluster.declared.nodes)
            yield _Role("content", cluster.id, hosts, self._content.restart)
        for container in model.containers:
            hosts = frozenset(node.host for node in container.nodes)
            yield _Role("container", container.id, hosts, self._containers.restart)

    def services(self, application: ApplicationId) -> list[ServiceAddress]:
        """The containers of the application, by their first ports, with the generation that each serves. Any thread;
        never waits."""
        return [
            ServiceAddress(cluster, "container", self._host, port, generation)
            for (owner, cluster), (port, generation) in self._containers.serving().items()
            if owner == str(application) and container_of(cluster) == cluster
        ]


class _Role(Struct, frozen=True):
    """A cluster of an application, and how it is restarted."""

    type: str
    cluster_id: str
    hosts: frozenset[str]
    """As services.xml and hosts.xml say; all of them are this machine."""
    restart: Callable[[str, str], None]
