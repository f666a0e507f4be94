"""The one tree of errors, sorted by who must act.

    PaperwaspError
    ├── InvalidInput            the caller sent something wrong              400
    │   ├── LanguageError       … in a text with positions (schema, YQL, …)  400
    │   ├── IllegalQuery        … a query parameter or body (Vespa code 3)   400
    │   ├── InvalidQuery        … the query itself (Vespa code 4)            400
    │   ├── UnreadablePackage   … an archive that is no application package  400
    │   ├── InvalidPackage      … an application package that is readable    412
    │   ├── UnknownVersion      … a version of Vespa that this is not        400
    │   └── TooLarge            … more than a named limit                    413
    │       ├── LongAddress     … in the address of a request                414
    │       └── LargeHead       … in the head of a request                   431
    ├── Unauthenticated         the caller did not say who it is             401
    ├── Forbidden               the caller may not do that                   403
    ├── NotFound                the caller named something that is not there 404
    ├── Conflict                the caller came too late                     409
    │   └── LockFailure         … another step for the same thing is not over 409
    ├── ConditionNotMet         a test-and-set condition did not hold        412
    ├── Overload                try again later                              429
    ├── Unavailable             a model elsewhere does not answer: the operator 502
    ├── UnreadableMessage       another process says what is no message, or of another version: the operator 502
    ├── NoSpace                 the operator must add room                   507
    ├── Timeout                 it took too long                             504
    │   ├── DeployTimeout       … a step of a deployment                     408
    │   └── SlowRequest         … the request itself came too slowly         408
    ├── FeedError               an operation of the feed client failed       502
    │   ├── ResultError         … because the service says so                502
    │   ├── ResultParseError    … since its answer cannot be understood      502
    │   └── OperationAborted    … since the client was closed, or gave up    502
    ├── MultiFeedError          some of several operations failed            502
    ├── Corruption              data on disk is damaged: the operator        500
    │   ├── LogDamage           … the operation log, which can be repaired   500
    │   └── OtherVersion        … or whole, but of another version           500
    ├── DiskFailure             the disk does not work: the operator         500
    └── InternalError           a defect of ours                             500

Each class carries the HTTP status that the shells answer with, and the code of a search error
(Vespa: container-disc Error codes). Conversion to a response happens once, in the HTTP shells.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import ClassVar, Literal, TypeVar

from msgspec import Struct

_Error = TypeVar("_Error", bound=BaseException)


class PaperwaspError(Exception):
    """The root of everything that paperwasp raises on purpose."""

    http_status: ClassVar[int] = 500
    search_code: ClassVar[int] = 18
    deploy_code: ClassVar[str] = "INTERNAL_SERVER_ERROR"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(PaperwaspError):
    """The caller sent something that cannot be accepted."""

    http_status = 400
    search_code = 17
    deploy_code = "BAD_REQUEST"


class Position(Struct, frozen=True):
    """A place in a text. `line` and `column` count from 1; `source` names the file or parameter."""

    source: str
    line: int
    column: int

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}"
        return f"{self.source}, {where}" if self.source else where


class Finding(Struct, frozen=True):
    """Something to tell about an application package: what is wrong with it, or right and worth telling."""

    message: str
    position: Position | None = None
    level: Literal["ERROR", "WARNING", "INFO"] = "WARNING"

    def __str__(self) -> str:
        return f"{self.position}: {self.message}" if self.position else self.message


class LanguageError(InvalidInput):
    """A text in a language of the service, or a file of a package, does not parse or names what does not exist."""

    deploy_code = "INVALID_APPLICATION_PACKAGE"
    search_code = 4

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(f"{position}: {message}" if position else message)
        self.bare_message = message
        self.position = position


class IllegalQuery(InvalidInput):
    """A search request that is wrong before its query is looked at."""

    search_code = 3


class InvalidQuery(InvalidInput):
    """A query that cannot be executed: unknown field, rank profile, source."""

    search_code = 4


class UnreadablePackage(InvalidInput):
    """An archive that cannot be read, or that is not safe to."""

    deploy_code = "INVALID_APPLICATION_PACKAGE"


class InvalidPackage(InvalidInput):
    """An application package that could be read but does not make an application. `findings` are all its errors."""

    http_status = 412
    deploy_code = "INVALID_APPLICATION_PACKAGE"

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class UnknownVersion(InvalidInput):
    """A version of Vespa whose interfaces this does not speak."""

    deploy_code = "UNKNOWN_VESPA_VERSION"


class TooLarge(InvalidInput):
    """More than a named limit of `paperwasp.limits`."""

    http_status = 413


class LongAddress(TooLarge):
    """The address of a request is longer than a server has to take."""

    http_status = 414


class LargeHead(TooLarge):
    """The head of a request has more bytes, or more fields, than a server has to take."""

    http_status = 431


class Unauthenticated(PaperwaspError):
    """The request says in no way that is known here whose it is."""

    http_status = 401
    search_code = 14
    deploy_code = "UNAUTHORIZED"


class Forbidden(PaperwaspError):
    """Whoever has sent the request may not do what it asks for."""

    http_status = 403
    search_code = 15
    deploy_code = "FORBIDDEN"


class NotFound(PaperwaspError):
    """What the request names does not exist."""

    http_status = 404
    search_code = 16
    deploy_code = "NOT_FOUND"


class Conflict(PaperwaspError):
    """Somebody else was first, or has what is requested."""

    http_status = 409
    deploy_code = "ACTIVATION_CONFLICT"


class LockFailure(Conflict):
    """Another step for the same application or session goes on for longer than the caller would wait."""

    deploy_code = "APPLICATION_LOCK_FAILURE"


class ConditionNotMet(PaperwaspError):
    """A document is not as the operation's condition demands."""

    http_status = 412


class Overload(PaperwaspError):
    """A queue is full. Nothing was done; the caller may try again."""

    http_status = 429
    search_code = 429
    deploy_code = "TOO_MANY_REQUESTS"


class Unavailable(PaperwaspError):
    """A model that runs elsewhere does not answer, or not as it should. The caller may try again."""

    http_status = 502
    search_code = 10


class UnreadableMessage(PaperwaspError):
    """Another process of the service has sent what is no message, or one of another version."""

    http_status = 502
    search_code = 10


class NoSpace(PaperwaspError):
    """The disk is too full to take more. Nothing was done."""

    http_status = 507
    search_code = 19


class Timeout(PaperwaspError):
    """The time that the request allows is over."""

    http_status = 504
    search_code = 12
    deploy_code = "REQUEST_TIMEOUT"


class DeployTimeout(Timeout):
    """A deployment step did not end in its time. Nothing was changed."""

    http_status = 408


class SlowRequest(Timeout):
    """The body of a request did not come in time. Nothing was done."""

    http_status = 408


class FeedError(PaperwaspError):
    """An operation of the feed client has no result. `document_id` names it; None: there was none yet."""

    http_status = 502

    def __init__(self, message: str, document_id: str | None = None) -> None:
        super().__init__(f"({document_id}) {message}" if document_id else message)
        self.bare_message = message
        self.document_id = document_id


class ResultError(FeedError):
    """The service answered that the operation failed (502, 504, 507). `trace` is the answer's, if it has one."""

    def __init__(self, message: str, document_id: str | None = None, trace: Sequence[object] | None = None) -> None:
        super().__init__(message, document_id)
        self.trace = trace


class ResultParseError(FeedError):
    """The answer to an operation is not a JSON object, or not one like those of the document API."""


class OperationAborted(FeedError):
    """The client was closed before the operation had its answer, or its circuit breaker is open."""


class MultiFeedError(PaperwaspError):
    """Some of several operations failed: `errors` has the error of each."""

    http_status = 502

    def __init__(self, errors: Sequence[FeedError]) -> None:
        super().__init__(f"{len(errors)} operations failed; the first: {errors[0].message}")
        self.errors = tuple(errors)


class Corruption(PaperwaspError):
    """Data on disk is damaged. The message names file and offset, `remedy` what the operator can do."""

    remedy: ClassVar[str] = (
        "Put the data directory back from a backup; or move what is named out of it, deploy and feed again"
    )


class LogDamage(Corruption):
    """The operation log is damaged, or has lost something."""

    remedy = (
        "Put the data directory back from a backup. To go on with what is whole, and without the rest, start with"
        " --repair"
    )


class OtherVersion(Corruption):
    """Data on disk has a format that this version does not read: one that is newer, or was given up."""

    remedy = (
        "Start the version of paperwasp that wrote it. To go on with this one, visit the documents there, and feed them"
        " into a new data directory"
    )


class DiskFailure(PaperwaspError):
    """The disk does not do what is asked of it. Nothing was done."""


class InternalError(PaperwaspError):
    """A defect of ours: an invariant does not hold."""


_FULL = (errno.ENOSPC, errno.EDQUOT)
_BROKEN = (errno.EIO, errno.EROFS, errno.ENXIO, errno.ENODEV)
_FULL_TEXT = "No space left on device"
"""All that the document store's errors say of it."""


def failure(error: Exception, what: str = "") -> PaperwaspError:
    """The error that a client is shown for an unforeseen one, without paths of the file system.

    `what` begins the message: it names the step that failed.
    """
    if _is_for_want_of_space(error):
        return NoSpace(f"{what}there is no room left on the disk. Nothing was changed: make room and try again")
    if isinstance(error, OSError) and error.errno in _BROKEN:
        said = error.strerror or "it does not answer"
        return DiskFailure(f"{what}the disk fails ({said}). Nothing was changed: see the system's log, and try again")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InternalError(f"{what}{type(error).__name__}: {reason}")


def _is_for_want_of_space(error: BaseException | None) -> bool:
    """Whether the error, or one that it came from, is that of a full disk."""
    while error is not None:
        is_full = isinstance(error, OSError) and error.errno in _FULL
        if is_full or isinstance(error, NoSpace) or _FULL_TEXT in str(error):
            return True
        error = error.__cause__
    return False


def without_frames(error: _Error) -> _Error:
    """The error, and what it was raised because of, without the frames that it went through.

    An error that is kept, as by a future that a frame of its own knows, would keep all that these frames hold until
    garbage is collected: the tensors of a query that ran out of time. For errors that are raised on purpose: nobody
    asks where.
    """
    inner: BaseException | None = error
    while inner is not None:
        inner.__traceback__ = None
        cause = inner.__cause__ or inner.__context__
        inner.__cause__ = inner.__context__ = None
        inner = cause
    return error
