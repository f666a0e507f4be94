"""Reports what is wrong with the scripts of a schema at its deployment."""

from __future__ import annotations

from collections.abc import Iterator

from paperwasp.errors import Finding, LanguageError
from paperwasp.indexing.compiler import compile_scripts
from paperwasp.indexing.components import BUILT_IN, Components
from paperwasp.schema.model import Schema


def check_scripts(schema: Schema, components: Components = BUILT_IN) -> Iterator[Finding]:
    """Errors of fields whose scripts do not make a value of the field's type, and warnings of those that never will."""
    for script in compile_scripts(schema, components):
        if isinstance(script, LanguageError):
            yield Finding(script.bare_message, script.position, "ERROR")
        else:
            yield from (Finding(each.bare_message, each.position, "WARNING") for each in script.warnings)
