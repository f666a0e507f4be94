"""Preparing a session: its package is read, built into a model, and compared with what is active.

Called with the application's lock held. Nothing here changes what runs. A package is prepared, then activated, then
often deployed again unchanged: `Packages` and `Models` keep the latest ones, a few of each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.application.changes.found import Changes
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.base.cache import Cache
from paperwasp.base.env import Environment
from paperwasp.base.file_contents import total_bytes
from paperwasp.base.records import replace
from paperwasp.base.yielding import computing_alone
from paperwasp.configserver.convergence import Convergence
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.repository import ApplicationId, Event, Session, SessionRepository
from paperwasp.configserver.running import RunningApplications
from paperwasp.errors import Finding, InvalidInput, InvalidPackage

BuildModel = Callable[[ApplicationPackage, ApplicationId], ApplicationModel]
"""Makes a package the model of an application. Errors: InvalidPackage with everything that is wrong."""

_DAY_NS: Final = 24 * 3600 * 10**9
_PACKAGES_KEPT: Final = 2


def read_alone(content: bytes, scratch: Path | None) -> ApplicationPackage:
    """As `application.package.read_package`. Where several come at once, each waits for the one before it, and requests
    of clients are served in between. Errors: UnreadablePackage."""
    with computing_alone():
        return read_package(content, scratch)


class Packages:
    """Packages of sessions, unpacked; those of the last requests are kept for the next ones."""

    def __init__(self, sessions: SessionRepository, scratch: Path | None = None) -> None:
        """`scratch`: the folder on whose disk large files are kept; None: they are kept in memory."""
        self._sessions = sessions
        self._scratch = scratch
        self._latest: Cache[Hashable, ApplicationPackage] = Cache(entries=_PACKAGES_KEPT)

    def of(self, session: Session) -> ApplicationPackage:
        """The files of a session. Errors: NotFound, Corruption."""
        package = self._latest.get(session.blob)
        if package is None:
            package = self.read(self._sessions.package(session))
            self.keep(session.blob, package)
        return package

    def read(self, content: bytes) -> ApplicationPackage:
        """The package in an archive. Errors: UnreadablePackage."""
        return read_alone(content, self._scratch)

    def keep(self, blob: str, package: ApplicationPackage) -> None:
        """Has the package in that blob be found again, unless it is large."""
        if total_bytes(package.files) <= limits.PACKAGE_KEPT_BYTES:
            self._latest.put(blob, package)


class Models:
    """Builds the model of an application from its package, once a day for the same files: what a package may do can end
    by date."""

    def __init__(self, build: BuildModel, packages: Packages, environment: Environment) -> None:
        self._build = build
        self._packages = packages
        self._environment = environment
        self._latest: Cache[Hashable, ApplicationModel] = Cache(entries=limits.MODELS_KEPT)
        self._checksums: Cache[Hashable, Hashable] = Cache(entries=limits.MODELS_KEPT)
        """Of packages, by blob: whether the model is there is known without unpacking one again."""
        self._building = threading.Semaphore(limits.MODELS_BUILT)

    def of(
        self, package: ApplicationPackage, application: ApplicationId, deadline: Deadline | None = None
    ) -> ApplicationModel:
        """The model. Errors: InvalidPackage; DeployTimeout when the time is over, with the step that took longest."""
        key = self._key(application, package.checksum)
        model = self._latest.get(key)
        if model is None:
            bounded = deadline.bounding_work() if deadline else nullcontext()
            with self._building, bounded:
                model = self._build(package, application)
            self._latest.drop_where(lambda _, other: total_bytes(other.files) > limits.PACKAGE_KEPT_BYTES)
            self._latest.put(key, model)
        return model

    def of_session(
        self, session: Session, application: ApplicationId, deadline: Deadline | None = None
    ) -> ApplicationModel:
        """The model that the session's package is of an application, whatever time it takes without a deadline.

        Errors: NotFound, Corruption, InvalidPackage, DeployTimeout.
        """
        checksum = self._checksums.get(session.blob)
        model = None if checksum is None else self._latest.get(self._key(application, checksum))
        if model is None:
            package = self._packages.of(session)
            self._checksums.put(session.blob, package.checksum)
            model = self.of(package, application, deadline)
        return model

    def _key(self, application: ApplicationId, checksum: Hashable) -> Hashable:
        return application, checksum, self._environment.time_ns() // _DAY_NS


class PrepareOptions(Struct, frozen=True):
    """The options of a preparation. `application` None: the one that the session belongs to."""

    application: ApplicationId | None = None
    dry_run: bool = False
    ignore_validation_errors: bool = False
    force: bool = False


class Prepared(Struct, frozen=True):
    """The outcome of a preparation."""

    session: Session
    findings: tuple[Finding, ...] = ()
    changes: Changes = Changes()


class Preparation:
    """Checks the packages of sessions, by themselves and against what is active."""

    def __init__(
        self,
        sessions: SessionRepository,
        packages: Packages,
        models: Models,
        applications: RunningApplications,
        convergence: Convergence,
        environment: Environment,
    ) -> None:
        self._sessions = sessions
        self._packages = packages
        self._models = models
        self._applications = applications
        self._convergence = convergence
        self._environment = environment

    def prepare(self, session: Session, options: PrepareOptions, deadline: Deadline) -> Prepared:
        """Errors: Conflict for a session that is or was active, NotFound for the tenant, DeployTimeout, InvalidPackage
        with everything that is wrong."""
        ignore = options.ignore_validation_errors
        prepared = replace(session.after(Event.PREPARE), ignore_validation_errors=ignore)
        self._sessions.check_tenant(session.application.tenant)
        self._packages.of(session)
        deadline.check()
        model = self._models.of_session(session, session.application, deadline)
        deadline.check()
        changes = self.checked_changes(prepared, model)
        self._convergence.check(prepared, deadline)
        deadline.check()
        if not options.dry_run:
            prepared = self._sessions.save(prepared)
        return Prepared(prepared, model.findings, changes)

    def checked_changes(self, session: Session, model: ApplicationModel) -> Changes:
        """The changes from the active application. Errors: InvalidPackage for one that no override allows."""
        from paperwasp.application.changes.find import find_changes
        from paperwasp.application.changes.found import describe_refusals

        before = self._active_model(session)
        if before is None or before is model:
            return Changes()
        changes = find_changes(before, model)
        today = datetime.fromtimestamp(self._environment.now_seconds(), UTC).date()
        refused = changes.find_refused(model.overrides, today, session.ignore_validation_errors)
        if refused:
            raise InvalidPackage(f"Invalid application package: {describe_refusals(refused)}")
        return changes

    def _active_model(self, session: Session) -> ApplicationModel | None:
        """The model that the session's is to replace. Errors: InvalidPackage where it cannot be built any more."""
        application = session.application
        if application not in self._applications.left_out:
            running = self._applications.running.get(application)
            return running.model if running else None
        try:
            return self._models.of_session(self._sessions.active_session(application), application)
        except InvalidInput as error:
            if session.ignore_validation_errors:
                return None
            unknown = f"What is lost with the active package of {application} is unknown, since it is not valid"
            raise InvalidPackage(
                f"{unknown} any more; ignoreValidationErrors=true replaces it: {error.message}"
            ) from error
