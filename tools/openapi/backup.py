"""Backups, which the config server sends."""

from __future__ import annotations

from typing import Final

from paperwasp.configserver.backup_api import SNAPSHOT
from tools.openapi.parts import STRING, STRINGS, Json, answer, errors, json_body, operation, record, ref

_TAG: Final = "backups"
_HEADERS: Final = {"Paperwasp-Files": "How many files there are.", "Paperwasp-Bytes": "Their bytes together."}


def paths() -> dict[str, dict[str, Json]]:
    """The path of backups."""
    summary = "Sends all files of the service as of one moment."
    responses = {"200": answer(summary, {"application/x-tar": STRING}, _HEADERS), **errors(ref("Error"), 409, 507)}
    body = json_body(
        record(("known",), known=STRINGS),
        "Files that need not be sent, since the client has them, by their SHA-256.",
        {"none": {"known": []}},
        required=False,
    )
    text = "A tar archive, whose last member is a manifest with all checksums. One backup at a time."
    return {SNAPSHOT: {"post": operation("snapshot", summary, _TAG, responses, body=body, text=text)}}
