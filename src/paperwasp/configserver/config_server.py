"""The config server without its HTTP interface (`app`): takes packages, makes them sessions, and says which
applications the service runs.

It has parts, and a caller is given those that it needs:

    sessions      tenants and sessions, as the config store keeps them        (`repository`)
    packages      the files of a session                                      (`preparation`)
    deployments   the steps of a deployment: create, edit, prepare, activate  (`deployments`)
    applications  what runs                                                   (`running`)
    convergence   how far the processes are that serve                        (`convergence`)
    reindexing    which documents are indexed again                           (`reindexing`)
"""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Final

from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.threads import ThreadPool
from paperwasp.configserver.activations import Activations
from paperwasp.configserver.convergence import Convergence
from paperwasp.configserver.deployments import Deployments
from paperwasp.configserver.preparation import BuildModel, Models, Packages, Preparation
from paperwasp.configserver.reindexer import ReindexChunk, Reindexer, no_chunks
from paperwasp.configserver.reindexing import ReindexingControl, ReindexingRepository
from paperwasp.configserver.repository import ApplicationId, SessionRepository
from paperwasp.configserver.running import RunningApplications
from paperwasp.coordination.config_store import ConfigStore
from paperwasp.errors import Conflict, InvalidInput

_LOG: Final = logging.getLogger(__name__)


class ConfigServer:
    """The parts of the config server, put together; it starts and stops them.

    `build_model` makes a package a model or raises InvalidPackage. `reindex_chunk` has a content cluster index
    documents again (see `reindexer`).
    """

    def __init__(
        self,
        store: ConfigStore,
        build_model: BuildModel,
        *,
        reindex_chunk: ReindexChunk = no_chunks,
        scratch: Path | None = None,
        environment: Environment = SYSTEM,
    ) -> None:
        """`scratch`: the folder on whose disk large files of packages are kept; None: in memory."""
        repository = ReindexingRepository(store)
        self.sessions: Final = SessionRepository(store)
        self.packages: Final = Packages(self.sessions, scratch)
        self.applications: Final = RunningApplications()
        self._reindexer = Reindexer(repository, self.applications.models, reindex_chunk, environment)
        self.reindexing: Final = ReindexingControl(repository, self.applications, self._reindexer.wake, environment)
        self.models: Final = Models(build_model, self.packages, environment)
        self.convergence: Final = Convergence(store, environment)
        preparation = Preparation(
            self.sessions, self.packages, self.models, self.applications, self.convergence, environment
        )
        self._activations = Activations(
            self.sessions,
            preparation,
            self.models,
            self.applications,
            self.reindexing,
            self.convergence,
            environment,
        )
        self.deployments: Final = Deployments(
            self.sessions, self.packages, self.applications, preparation, self._activations, environment
        )

        self._threads = ThreadPool("catching-up", 1)
        self._catching_up: set[ApplicationId] = set()
        """Those that wait for the thread."""
        self._stop_watching = self.convergence.watch_served(self._catch_up_later)

    def restore(self) -> None:
        """Takes up all that was active before the restart, oldest generation first. Call once, when the processes that
        are waited for have begun to serve, and before deployments are taken.

        An application whose package or ports are in its way is left out: others serve, and it can be deployed again.
        Errors: those of finishing what a crash has cut off.
        """
        self.sessions.sweep()
        for active in self.sessions.all_active():
            try:
                self._activations.restore(active)
            except (InvalidInput, Conflict) as error:
                if active.session_id is None:
                    raise
                self.applications.leave_out(active.application, active.generation, error.message)

    def start(self) -> None:
        """Begins to reindex what is to be."""
        self._reindexer.start()

    def catch_up_all(self) -> None:
        """Takes up soon, on a thread, what could not be taken up when it was activated. Call it now and then."""
        for application in list(self._activations.unfinished):
            self._catch_up_later(application)

    def _catch_up_later(self, application: ApplicationId) -> None:
        """Takes up, on a thread, a generation that may be served now and could not be at first."""
        if application in self._activations.unfinished and application not in self._catching_up:
            self._catching_up.add(application)
            with suppress(RuntimeError):  # it is being closed
                self._threads.submit(self._catch_up, application)

    def _catch_up(self, application: ApplicationId) -> None:
        self._catching_up.discard(application)  # first: what is reported from now on is looked at again
        try:
            self.deployments.catch_up(application)
        except Exception:
            _LOG.exception("What is served of application %s could not be taken up", application)

    def close(self) -> None:
        """Ends reindexing, after the chunk that is under way; deployments that wait for their turn give up."""
        self._stop_watching()
        self.deployments.close()
        self._threads.shutdown(cancel_futures=True)
        self._reindexer.stop()
