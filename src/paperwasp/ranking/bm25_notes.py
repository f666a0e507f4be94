"""Warnings of rank profiles whose bm25 cannot score: they are valid, and their scores are 0 or all alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from paperwasp.ranking.profile import CompiledProfile
from paperwasp.schema.model import Schema

_BEGINNING: Final = "bm25("


def bm25_fields(names: Iterable[str]) -> list[str]:
    """The fields of the bm25 features among some features, each once."""
    found = (name.removeprefix(_BEGINNING).removesuffix(")") for name in names if name.startswith(_BEGINNING))
    return list(dict.fromkeys(field.partition(",")[0].removeprefix("field:") for field in found))


def fields_of_profile(profile: CompiledProfile) -> list[str]:
    """The fields whose bm25 the first two phases of a profile take."""
    programs = [profile.first_phase] + ([profile.second_phase] if profile.second_phase is not None else [])
    return bm25_fields(feature.name for program in programs for feature in program.features)


def coarse(schema: Schema, fields: Iterable[str]) -> Iterator[str]:
    """A sentence for each of the fields of which too little is kept for bm25."""
    for name in fields:
        index = schema.fields[name].index if name in schema.fields else None
        if index is not None and not index.enable_bm25 and not schema.is_streamed:
            yield (
                f"bm25({name}) takes each match for one in a text of average length, as Vespa does: field {name} has "
                "no 'index: enable-bm25'"
            )


def unsearched(profile: CompiledProfile, searched: Collection[str]) -> Iterator[str]:
    """A sentence for each of the fields in which the query has no term."""
    for name in fields_of_profile(profile):
        if name not in searched:
            yield f"bm25({name}) is 0 in all hits: no term of the query searches field {name}"
