"""Constants and ONNX models, of a schema or of a rank profile. Whether their files are there is checked elsewhere.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#constant, #constants, #onnx-model
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.schema.model import Constant, Input, OnnxModel
from paperwasp.schema.problems import Problems
from paperwasp.schema.tree import Node
from paperwasp.schema.values import boolean, integer

_FILE = "file:"


def schema_constant(node: Node, problems: Problems) -> Constant | None:
    """The constant of a `constant name { }` block; None after telling `problems` why there is none."""
    elements = {child.keyword: child for child in node.children}
    if "type" not in elements:
        problems.error(f"constant {node.name} must have a type", node.position)
    if "file" not in elements and "uri" not in elements:
        problems.error(f"constant {node.name} must have a file", node.position)
    type_ = _tensor(elements["type"], elements["type"].text, problems) if "type" in elements else None
    if type_ is None:
        return None
    file, uri = (elements[word].text if word in elements else "" for word in ("file", "uri"))
    return Constant(node.name, type_, file=file, uri=uri, position=node.position)


def profile_constant(node: Node, problems: Problems) -> Constant | None:
    """The constant of a line of `constants { }`; None after telling `problems` why there is none."""
    if not node.values:
        problems.error(f"constant {node.name} has no value", node.position)
        return None
    type_ = _declared_type(node, "constant", problems)
    if type_ is None:
        return None
    if node.text.startswith(_FILE):
        path = node.text.removeprefix(_FILE).strip()
        return Constant(node.name, type_, file=path, position=node.position)
    text = _literal(node, type_, "constant", problems)
    return None if text is None else Constant(node.name, type_, text, position=node.position)


def profile_input(node: Node, problems: Problems) -> Input | None:
    """The input of a line of `inputs { }`; None after telling `problems` why there is none."""
    if node.type == "string":
        return Input(None, " ".join(node.text.split()), node.position)
    type_ = _declared_type(node, "input", problems)
    if type_ is None:
        return None
    if not node.values:
        return Input(type_, position=node.position)
    text = _literal(node, type_, "input", problems)
    return None if text is None else Input(type_, text, node.position)


def onnx_model(node: Node, problems: Problems) -> OnnxModel:
    """The model of an `onnx-model name { }` block."""
    elements = {child.keyword: child for child in node.children}
    if "file" not in elements and "uri" not in elements:
        problems.error(f"onnx-model {node.name} must have a file", node.position)
    file, uri, mode = (elements[word].text if word in elements else "" for word in ("file", "uri", "execution-mode"))
    device, intra, inter = (
        integer(elements[word], problems) if word in elements else None
        for word in ("gpu-device", "intraop-threads", "interop-threads")
    )
    return OnnxModel(
        name=node.name,
        file=file,
        uri=uri,
        inputs=_bindings(node, "input"),
        outputs=_bindings(node, "output"),
        gpu_device=device,
        intraop_threads=intra,
        interop_threads=inter,
        execution_mode=mode,
        optimizes="optimize-model" not in elements or boolean(elements["optimize-model"]),
        position=node.position,
    )


def _bindings(node: Node, keyword: str) -> Mapping[str, str]:
    return MappingProxyType({child.name: child.text.strip() for child in node.all(keyword)})


def _declared_type(node: Node, what: str, problems: Problems) -> TensorType | None:
    if node.type in ("float", "long"):
        problems.warn(f"{what} {node.name} has type double: there is no {node.type}", node.position)
    if node.type == "string":
        problems.error(f"{what} {node.name} cannot be a string", node.position)
        return None
    return _tensor(node, node.type, problems) if node.type.startswith("tensor") else NUMBER


def _tensor(node: Node, text: str, problems: Problems) -> TensorType | None:
    try:
        return TensorType.parse(text)
    except ValueError as error:
        problems.error(f"the type of {node.describe()}: {error}", node.position)
        return None


def _literal(node: Node, type_: TensorType, what: str, problems: Problems) -> str | None:
    """The value as text, a number in its shortest form; None after telling `problems` that it is none of the type."""
    if node.text.startswith(("{", "[")):
        if not type_.is_number:
            return " ".join(node.text.split())
        problems.error(f"the value of {what} {node.name} is not a number: {node.text!r}", node.value_position)
        return None
    try:
        value = float(node.text.rstrip("L"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problems.error(f"the value of {what} {node.name} is not a number: {node.text!r}", node.value_position)
    elif not type_.is_number:
        problems.error(f"{what} {node.name} of type {type_} cannot be a number", node.value_position)
    else:
        return repr(value)
    return None
