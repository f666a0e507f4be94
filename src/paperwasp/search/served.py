"""Schemas of an application, compiled once for all queries: rank profiles, types of mode streaming, summaries.

A content cluster compiles all of it when it is configured, so that the first query is as fast as the tenth.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from paperwasp.core import _core
from paperwasp.errors import InvalidQuery, PaperwaspError
from paperwasp.ranking import Unexecuted
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.schema.model import Schema
from paperwasp.search.features.compile import served_profile
from paperwasp.search.features.kept_profiles import KeptProfiles, compiled_bytes
from paperwasp.search.query_resources import Helpers
from paperwasp.search.ready_profile import ReadyProfile
from paperwasp.search.show.hits import PageSteps
from paperwasp.search.show.summary import SummaryForms
from paperwasp.search.streaming_search import STREAMING_MODE, StreamedType
from paperwasp.text.parsing.tokens import did_you_mean


class ServedSchemas:
    """The schemas of one content cluster, compiled. May be asked from any thread."""

    def __init__(self, helpers: Helpers | None = None) -> None:
        """`helpers`: the threads that help with large queries; None: there are none."""
        self.helpers = helpers or Helpers()
        self._profiles: dict[int, tuple[Schema, dict[str, ReadyProfile | Unexecuted]]] = {}
        self._streamed: dict[int, tuple[Schema, StreamedType]] = {}
        self._of_queries: KeptProfiles[ReadyProfile | Unexecuted] = KeptProfiles()
        self.summaries, self.pages = SummaryForms(), PageSteps()

    def ready_profile(self, schema: Schema, name: str, expressions: RankExpressions | None = None) -> ReadyProfile:
        """Return a rank profile as queries need it, compiling it where it is asked for first. `expressions`: those of a
        query, in place of the profile's.

        Errors: InvalidQuery if the schema has no such profile, or it is not executed yet; LanguageError.
        """
        if expressions is None:
            known = self._profiles.get(id(schema))
            ready = None if known is None else known[1].get(name)
            if ready is None:
                ready = self._compile(schema, name)
        else:
            ready = self._profile_with(schema, name, expressions)
        if isinstance(ready, Unexecuted):
            raise InvalidQuery(f"rank profile '{name}' of schema '{schema.name}': {ready}")
        return ready

    def _profile_with(self, schema: Schema, name: str, expressions: RankExpressions) -> ReadyProfile | Unexecuted:
        found = self._of_queries.get(schema, name, expressions)
        if found is not None:
            return found
        ready = _made(schema, name, expressions)
        size_bytes = compiled_bytes(expressions, ready.profile if isinstance(ready, ReadyProfile) else None)
        return self._of_queries.add(schema, name, expressions, ready, size_bytes)

    def is_compiled(self, schema: Schema, name: str, expressions: RankExpressions | None) -> bool:
        """Return whether a rank profile is compiled, with these expressions of a query."""
        return expressions is None or self._of_queries.get(schema, name, expressions) is not None

    def _compile(self, schema: Schema, name: str) -> ReadyProfile | Unexecuted:
        ready = _made(schema, name)
        _, profiles = self._profiles.setdefault(id(schema), (schema, {}))
        return profiles.setdefault(name, ready)

    def streamed(self, schema: Schema) -> StreamedType:
        """Return the type of mode streaming as its documents are searched."""
        found = self._streamed.get(id(schema))
        if found is None:
            found = self._streamed[id(schema)] = (schema, StreamedType.of(schema))
        return found[1]

    def compile_all(self, schemas: Mapping[str, Schema], modes: Mapping[str, str]) -> None:
        """Compile every rank profile of these schemas, and forget what replaced schemas compiled to.

        `modes`: by document type, where it is not mode index. A type of mode streaming is compiled as its batches are
        searched. What cannot be compiled, such as a model whose file is gone, fails for the query that asks for it.
        """
        declared = {id(schema) for schema in schemas.values()}
        self._streamed = {key: value for key, value in list(self._streamed.items()) if key in declared}
        searched = [
            self.streamed(schema).schema if modes.get(name) == STREAMING_MODE else schema
            for name, schema in schemas.items()
        ]
        kept = {id(schema) for schema in searched}
        self._profiles = {key: value for key, value in list(self._profiles.items()) if key in kept}
        self._of_queries.keep_only(kept)
        self.summaries, self.pages = SummaryForms(), PageSteps()
        _core.forget_routes()
        for schema in searched:
            for name in schema.rank_profiles:
                if name not in self._profiles.get(id(schema), (schema, {}))[1]:
                    with suppress(PaperwaspError):
                        self._compile(schema, name)


def _made(schema: Schema, name: str, expressions: RankExpressions | None = None) -> ReadyProfile | Unexecuted:
    """Make a rank profile ready. Errors: InvalidQuery if there is no such profile; LanguageError."""
    served = served_profile(schema, name, expressions)
    if served is None:
        hint = did_you_mean(name, schema.rank_profiles)
        raise InvalidQuery(f"schema '{schema.name}' does not contain requested rank profile '{name}'{hint}")
    return served.compiled if isinstance(served.compiled, Unexecuted) else ReadyProfile.of(served)
