"""All components of an application that indexing scripts and queries call, and what a deployment tells of them.

embedders     those of Vespa's types (`embedders`), and objects with `embed`
chunkers      the built-in ones, and objects with `chunk`
generators    those of Vespa's classes (`generators`), and objects with `generate`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from paperwasp.components import generation as generators
from paperwasp.components.cors import cors_class
from paperwasp.components.embedders import registry as embedders
from paperwasp.components.python_components import FLAG, is_python, load
from paperwasp.errors import Finding
from paperwasp.indexing.components import BUILT_IN, Components
from paperwasp.schema.files import Component, PackageFiles
from paperwasp.schema.model import Schema


def is_executed(component: Component) -> bool:
    """Return whether a component is one that can be run."""
    if cors_class(component):
        return True
    return is_python(component) or generators.is_executed(component) or embedders.is_executed(component.type)


def components_of(schema: Schema) -> Components:
    """The components that the scripts of a schema may call."""
    return components_in(schema.components, schema.files or PackageFiles())


def components_in(components: Sequence[Component], files: PackageFiles) -> Components:
    """The same of some components. Those that cannot be used say so when they are."""
    others = [each for each in components if not is_python(each)]
    own = [each for each in components if is_python(each) and each.kind == "component"]
    loaded = {each.id: load(each, files) for each in own}
    mine = [(id, each.embedder, each.chunker, each.generator) for id, each in loaded.items()]
    return Components(
        MappingProxyType({**embedders.embedders_of(others, files), **{id: each for id, each, _, _ in mine if each}}),
        MappingProxyType({**BUILT_IN.chunkers, **{id: each for id, _, each, _ in mine if each}}),
        MappingProxyType({**generators.generators_of(others, files), **{id: each for id, _, _, each in mine if each}}),
    )


def files_of(schemas: Iterable[Schema]) -> PackageFiles:
    """The files that the schemas of an application share, for what is made of them once; none without schemas."""
    return next((schema.files for schema in schemas if schema.files is not None), PackageFiles())


def check_components(components: Sequence[Component], files: PackageFiles) -> Iterator[Finding]:
    """Find the problems of an application's components: errors; warnings of what may still come."""
    others = [each for each in components if not is_python(each)]
    yield from embedders.check_components(others, files)
    yield from generators.check_components(others, files)
    for component in components:
        if is_python(component) and (problem := load(component, files).problem):
            yield Finding(f"{component.kind} '{component.id}': {problem}", component.position, "ERROR")


def refuse_python(components: Sequence[Component]) -> Iterator[Finding]:
    """Errors for components that are written in Python, where the service does not run such."""
    for component in components:
        if is_python(component):
            problem = f"{component.kind} '{component.id}' is written in Python, which this service does not run"
            yield Finding(f"{problem}: start it with {FLAG}", component.position, "ERROR")
