"""The whole schema language as one table: block → keyword → how the element is written.

An element is a keyword, a *header* (its name and what follows it on the way to the body), and one of the bodies that
it may have: a value after a colon, a `{ }` block, or nothing at all. Where the language allows a property both as
`attribute: fast-search` and as `attribute { fast-search }`, the table says CHILD, and both give the same tree.

The table holds syntax only. What paperwasp executes is decided by the resolver, never here.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html, and the terminals of its parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType

from msgspec import Struct


class HeaderPart(Enum):
    """One piece of a header, in the order in which it is written."""

    NAME = auto()
    """An identifier: letters, digits and underscores."""
    OPTIONAL_NAME = auto()
    OPTIONAL_PATH = auto()
    """Nothing, or as PATH."""
    DASHED_NAME = auto()
    """An identifier that may hold dashes."""
    PATH = auto()
    """Identifiers joined with dots."""
    QUOTED_NAME = auto()
    """An identifier or a quoted string."""
    FUNCTION = auto()
    """`inline`? name `(` parameters `)`."""
    INHERITS = auto()
    """`inherits` and a list of names, or nothing."""
    TYPE = auto()
    """`type` and a data type."""
    OPTIONAL_TYPE = auto()
    FIELD = auto()
    """The word `field` (of `import field`)."""
    AS = auto()
    """`as` and a name."""


class Value(Enum):
    """The kinds of values that may follow the colon."""

    CHILD = auto()
    """One element of the block that the element may also be written with."""
    CHILDREN = auto()
    """As CHILD, and more of them after commas."""
    WORD = auto()
    WORDS = auto()
    """Words with commas between."""
    TEXT = auto()
    """A word or a quoted string."""
    PATH = auto()
    """Everything up to white space or a brace."""
    INTEGER = auto()
    NUMBER = auto()
    NUMBER_OR_WORD = auto()
    BOOLEAN = auto()
    """on, off, true or false."""
    TYPE = auto()
    """A data type."""
    LINE = auto()
    """Free text to the end of the line, or to the brace that closes the block around it."""
    OPTIONAL_LINE = auto()
    """As LINE, or nothing."""
    SCRIPT = auto()
    """Free text as LINE, continued on the next line while a bracket is open or a `|` or `.` hangs at the seam."""


class Block(Enum):
    """Blocks that are not made of elements."""

    TEXT = auto()
    """Free text with balanced braces."""
    PROPERTIES = auto()
    """Lines of `key: value`, both free text."""
    INPUTS = auto()
    """`name`, or `query(name)` or `constant(name)`, an optional type, an optional `:` and value."""


class Element(Struct, frozen=True):
    """How one element is written. `block` names a table of BLOCKS; `bare` allows it to stand alone."""

    header: tuple[HeaderPart, ...] = ()
    value: Value | None = None
    block: str | Block | None = None
    bare: bool = False
    choices: tuple[str, ...] = ()
    """The words that WORD may be; any, if empty."""
    means: str = ""
    """The keyword that the tree shall have, for elements with two words."""


def _flag() -> Element:
    return Element(bare=True)


def _value(value: Value, *choices: str) -> Element:
    return Element(value=value, choices=choices)


def _block(block: str, *header: HeaderPart) -> Element:
    return Element(header, block=block)


def _properties(block: str, *header: HeaderPart) -> Element:
    """An element with the two forms `keyword: property` and `keyword { property … }`."""
    return Element(header, value=Value.CHILD, block=block)


_FEATURES = Element((HeaderPart.INHERITS,), value=Value.OPTIONAL_LINE, block=Block.TEXT)
_EXPRESSION = Element(value=Value.LINE, block=Block.TEXT)
_STEMMING = _value(Value.WORD)
_FIELD = _block("field", HeaderPart.NAME, HeaderPart.TYPE)
_STRUCT = _block("struct", HeaderPart.NAME, HeaderPart.INHERITS)
_ANNOTATION = _block("annotation", HeaderPart.NAME, HeaderPart.INHERITS)
_MATCH = _properties("match")
_RANK = _properties("rank")
_SORTING = _properties("sorting")
_ATTRIBUTE = _properties("attribute", HeaderPart.OPTIONAL_NAME)
_INDEX = Element((HeaderPart.OPTIONAL_NAME,), value=Value.CHILDREN, block="index")
_INDEXING = Element(value=Value.SCRIPT, block=Block.TEXT)
_QUERY_COMMAND = _value(Value.TEXT)
_SUMMARY_TO = Element((HeaderPart.OPTIONAL_NAME,), value=Value.WORDS)
_RANK_PROFILE = Element((HeaderPart.DASHED_NAME, HeaderPart.INHERITS), block="rank-profile", means="rank-profile")
_ONNX_MODEL = _block("onnx-model", HeaderPart.NAME)
_FUNCTION = Element((HeaderPart.FUNCTION,), block="function", means="function")
_DIVERSITY = _block("diversity")
_SCHEMA = Element((HeaderPart.NAME, HeaderPart.INHERITS), block="schema", means="schema")
_SUMMARY_IN_FIELD = _properties("summary", HeaderPart.OPTIONAL_NAME, HeaderPart.OPTIONAL_TYPE)
_ONNX_BINDING = Element((HeaderPart.QUOTED_NAME,), value=Value.LINE)

_TUNING = {
    "num-threads-per-search": _value(Value.INTEGER),
    "min-hits-per-thread": _value(Value.INTEGER),
    "num-search-partitions": _value(Value.INTEGER),
    "termwise-limit": _value(Value.NUMBER),
    "post-filter-threshold": _value(Value.NUMBER),
    "approximate-threshold": _value(Value.NUMBER),
    "filter-first-threshold": _value(Value.NUMBER),
    "filter-first-exploration": _value(Value.NUMBER),
    "exploration-slack": _value(Value.NUMBER),
    "target-hits-max-adjustment-factor": _value(Value.NUMBER),
    "filter-threshold": _value(Value.NUMBER),
}

SCHEMA_FILE = "schema file"
PROFILE_FILE = "profile file"

BLOCKS: Mapping[str, Mapping[str, Element]] = MappingProxyType(
    {
        SCHEMA_FILE: {
            "schema": _SCHEMA,
            "search": _SCHEMA,
            "document": _block("document", HeaderPart.NAME, HeaderPart.INHERITS),
        },
        PROFILE_FILE: {"rank-profile": _RANK_PROFILE, "model": _RANK_PROFILE},
        "schema": {
            "document": _block("document", HeaderPart.OPTIONAL_NAME, HeaderPart.INHERITS),
            "field": _FIELD,
            "fieldset": _block("fieldset", HeaderPart.NAME),
            "rank-profile": _RANK_PROFILE,
            "model": _RANK_PROFILE,
            "constant": _block("constant", HeaderPart.NAME),
            "onnx-model": _ONNX_MODEL,
            "stemming": _STEMMING,
            "documentid": _value(Value.WORD, "from-disk", "attribute"),
            "raw-as-base64-in-summary": Element(value=Value.BOOLEAN, bare=True),
            "document-summary": _block("document-summary", HeaderPart.DASHED_NAME, HeaderPart.INHERITS),
            "import": _block("import", HeaderPart.FIELD, HeaderPart.PATH, HeaderPart.AS),
            "index": Element((HeaderPart.NAME,), value=Value.CHILDREN, block="index"),
            "struct": _STRUCT,
            "annotation": _ANNOTATION,
        },
        "document": {
            "field": _FIELD,
            "struct": _STRUCT,
            "annotation": _ANNOTATION,
            "compression": _block("compression"),
        },
        "compression": {
            "type": _value(Value.WORD),
            "level": _value(Value.INTEGER),
            "threshold": _value(Value.INTEGER),
        },
        "struct": {"field": _block("struct field", HeaderPart.NAME, HeaderPart.TYPE)},
        "annotation": {"field": _block("struct field", HeaderPart.NAME, HeaderPart.TYPE)},
        "struct field": {"id": _value(Value.INTEGER), "match": _MATCH},
        "import": {},
        "field": {
            "alias": Element((HeaderPart.OPTIONAL_PATH,), value=Value.WORD),
            "attribute": _ATTRIBUTE,
            "bolding": _value(Value.BOOLEAN),
            "dictionary": _properties("dictionary"),
            "id": _value(Value.INTEGER),
            "index": _INDEX,
            "indexing": _INDEXING,
            "linguistics": _block("linguistics"),
            "map": _properties("map"),
            "match": _MATCH,
            "normalizing": _value(Value.WORD),
            "query-command": _QUERY_COMMAND,
            "rank": _RANK,
            "rank-type": Element((HeaderPart.OPTIONAL_NAME,), value=Value.WORD),
            "sorting": _SORTING,
            "stemming": _STEMMING,
            "struct-field": _block("struct-field", HeaderPart.PATH),
            "summary": _SUMMARY_IN_FIELD,
            "summary-to": _SUMMARY_TO,
            "weight": _value(Value.INTEGER),
            "weightedset": _properties("weightedset"),
            "header": _flag(),
            "body": _flag(),
        },
        "struct-field": {
            "attribute": _ATTRIBUTE,
            "indexing": _INDEXING,
            "match": _MATCH,
            "query-command": _QUERY_COMMAND,
            "rank": _RANK,
            "struct-field": _block("struct-field", HeaderPart.PATH),
            "summary": _SUMMARY_IN_FIELD,
            "summary-to": _SUMMARY_TO,
        },
        "attribute": {
            "fast-search": _flag(),
            "fast-access": _flag(),
            "fast-rank": _flag(),
            "mutable": _flag(),
            "paged": _flag(),
            "enable-bit-vectors": _flag(),
            "enable-only-bit-vector": _flag(),
            "sorting": _SORTING,
            "alias": Element((HeaderPart.OPTIONAL_PATH,), value=Value.WORD),
            "distance-metric": _value(Value.WORD),
            "quantization": _block("quantization"),
        },
        "quantization": {"bits": _value(Value.INTEGER)},
        "sorting": {
            "ascending": _flag(),
            "descending": _flag(),
            "order": _value(Value.WORD, "ascending", "descending"),
            "function": _value(Value.WORD, "uca", "raw", "lowercase"),
            "strength": _value(Value.WORD, "primary", "secondary", "tertiary", "quaternary", "identical"),
            "locale": _value(Value.WORD),
        },
        "dictionary": {"hash": _flag(), "btree": _flag(), "cased": _flag(), "uncased": _flag()},
        "weightedset": {"create-if-nonexistent": _flag(), "remove-if-zero": _flag()},
        "index": {
            "prefix": _flag(),
            "alias": _value(Value.WORD),
            "stemming": _STEMMING,
            "arity": _value(Value.INTEGER),
            "lower-bound": _value(Value.INTEGER),
            "upper-bound": _value(Value.INTEGER),
            "dense-posting-list-threshold": _value(Value.NUMBER),
            "enable-bm25": _flag(),
            "hnsw": Element(block="hnsw", bare=True),
        },
        "hnsw": {
            "max-links-per-node": _value(Value.INTEGER),
            "neighbors-to-explore-at-insert": _value(Value.INTEGER),
            "multi-threaded-indexing": _value(Value.BOOLEAN),
        },
        "map": {"fast-search": _flag()},
        "linguistics": {"profile": Element(value=Value.TEXT, block="linguistics profile")},
        "linguistics profile": {"index": _value(Value.TEXT), "search": _value(Value.TEXT)},
        "match": {
            "text": _flag(),
            "token": Element(bare=True, means="text"),
            "word": _flag(),
            "exact": _flag(),
            "gram": _flag(),
            "prefix": _flag(),
            "substring": _flag(),
            "suffix": _flag(),
            "cased": _flag(),
            "uncased": _flag(),
            "exact-terminator": _value(Value.TEXT),
            "gram-size": _value(Value.INTEGER),
            "max-length": _value(Value.INTEGER),
            "max-occurrences": _value(Value.INTEGER),
            "max-token-length": _value(Value.INTEGER),
        },
        "rank": {"filter": _flag(), "normal": _flag(), "literal": _flag()},
        "summary": {
            "full": _flag(),
            "static": _flag(),
            "dynamic": _flag(),
            "tokens": _flag(),
            "matched-elements-only": _flag(),
            "select-elements-by": _value(Value.LINE),
            "struct-field": _value(Value.WORDS),
            "bolding": _value(Value.BOOLEAN),
            "source": _value(Value.WORDS),
            "to": _value(Value.WORDS),
        },
        "fieldset": {"fields": _value(Value.WORDS), "query-command": _QUERY_COMMAND, "match": _MATCH},
        "document-summary": {
            "summary": _block("summary", HeaderPart.DASHED_NAME, HeaderPart.OPTIONAL_TYPE),
            "from-disk": _flag(),
            "omit-summary-features": _flag(),
        },
        "constant": {"file": _value(Value.PATH), "uri": _value(Value.PATH), "type": _value(Value.TYPE)},
        "onnx-model": {
            "file": _value(Value.PATH),
            "uri": _value(Value.PATH),
            "input": _ONNX_BINDING,
            "output": _ONNX_BINDING,
            "gpu-device": _value(Value.INTEGER),
            "intraop-threads": _value(Value.INTEGER),
            "interop-threads": _value(Value.INTEGER),
            "execution-mode": _value(Value.WORD, "parallel", "sequential"),
            "optimize-model": _value(Value.BOOLEAN),
        },
        "rank-profile": {
            "rank-profile": _RANK_PROFILE,
            "diversity": _DIVERSITY,
            "strict": _value(Value.BOOLEAN),
            "match-phase": _block("match-phase"),
            "first-phase": _block("first-phase"),
            "second-phase": _block("second-phase"),
            "global-phase": _block("global-phase"),
            "function": _FUNCTION,
            "macro": _FUNCTION,
            "inputs": Element(block=Block.INPUTS),
            "constants": Element(block=Block.INPUTS),
            "mutate": _block("mutate"),
            "onnx-model": _ONNX_MODEL,
            "significance": _block("significance"),
            "rank-properties": Element(block=Block.PROPERTIES),
            "match-features": _FEATURES,
            "summary-features": _FEATURES,
            "rank-features": _FEATURES,
            "sort-features": _FEATURES,
            "ignore-default-rank-features": _flag(),
            "rank": _properties("field rank", HeaderPart.NAME),
            "rank-type": Element((HeaderPart.NAME,), value=Value.WORD),
            "weight": Element((HeaderPart.NAME,), value=Value.INTEGER),
            "weakand": _block("weakand"),
            "prefetch-tensors": Element(value=Value.BOOLEAN),
            **_TUNING,
        },
        "field rank": {
            "filter": _flag(),
            "normal": _flag(),
            "filter-threshold": _value(Value.NUMBER),
            "element-gap": _value(Value.NUMBER_OR_WORD),
        },
        "function": {"expression": _EXPRESSION},
        "first-phase": {
            "expression": _EXPRESSION,
            "keep-rank-count": _value(Value.INTEGER),
            "total-keep-rank-count": _value(Value.INTEGER),
            "rank-score-drop-limit": _value(Value.NUMBER),
        },
        "second-phase": {
            "expression": _EXPRESSION,
            "rerank-count": _value(Value.INTEGER),
            "total-rerank-count": _value(Value.INTEGER),
            "rank-score-drop-limit": _value(Value.NUMBER),
        },
        "global-phase": {
            "expression": _EXPRESSION,
            "rerank-count": _value(Value.INTEGER),
            "rank-score-drop-limit": _value(Value.NUMBER),
        },
        "match-phase": {
            "attribute": _value(Value.WORD),
            "order": _value(Value.WORD, "ascending", "descending"),
            "max-hits": _value(Value.INTEGER),
            "total-max-hits": _value(Value.INTEGER),
            "max-filter-coverage": _value(Value.NUMBER),
            "evaluation-point": _value(Value.NUMBER),
            "pre-post-filter-tipping-point": _value(Value.NUMBER),
            "diversity": _DIVERSITY,
        },
        "diversity": {
            "attribute": _value(Value.WORD),
            "min-groups": _value(Value.INTEGER),
            "cutoff-factor": _value(Value.NUMBER),
            "cutoff-strategy": _value(Value.WORD, "strict", "loose"),
        },
        "mutate": {
            phase: Element(block=Block.TEXT)
            for phase in ("on-match", "on-first-phase", "on-second-phase", "on-summary")
        },
        "significance": {"use-model": _value(Value.BOOLEAN)},
        "weakand": {
            "stopword-limit": _value(Value.NUMBER),
            "adjust-target": _value(Value.NUMBER),
            "allow-drop-all": _value(Value.BOOLEAN),
        },
    }
)
"""Block name → keyword → element. The first two are the files themselves."""


def blocks_with(keyword: str) -> tuple[str, ...]:
    """The blocks that may hold `keyword`, for the error that it stands in the wrong one."""
    return tuple(block for block, elements in BLOCKS.items() if keyword in elements)
