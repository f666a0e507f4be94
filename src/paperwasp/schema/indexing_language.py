"""The indexing language: what `indexing` says, as a tree.

    input title . " " . input artist | lowercase | summary | index

A script is statements, a statement is expressions joined by `|`, each working on the value of the one before. Most
expressions are a keyword and arguments: the table `_ARGUMENTS` holds all of them.

Vespa: https://docs.vespa.ai/en/reference/writing/indexing-language.html, and the productions of its parser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from paperwasp import limits
from paperwasp.errors import LanguageError, Position
from paperwasp.schema.indexing_tree import OUTPUTS, Expression
from paperwasp.schema.tree import nearest
from paperwasp.text.parsing import Lexicon, TokenStream
from paperwasp.text.parsing.tokens import END

_LEXICON: Final = Lexicon(
    {
        "_space": r"\s+",
        "_comment": r"#[^\n]*",
        "string": r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'",
        "number": r"0[xX][0-9a-fA-F]+[lL]?|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[lLfF]?",
        "word": r"[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*",
        "other": r"\|\||==|!=|<=|>=|.",
    }
)


def parse_script(text: str) -> Expression:
    """The script in `text`, an Expression `script` of statements. Raises LanguageError at the first mistake.

    Positions are relative to the text.
    """
    found = _parse(text)
    if isinstance(found, LanguageError):
        raise LanguageError(found.bare_message, found.position)
    return found


@lru_cache(maxsize=1024)
def _parse(text: str) -> Expression | LanguageError:
    # Schemas have the same few scripts over and over.
    try:
        return _Parser(_LEXICON.tokenize(text)).script()
    except LanguageError as error:
        return error


# What the keywords take

_Argument = Callable[["_Parser"], tuple[str, ...]]


def _nothing(parser: _Parser) -> tuple[str, ...]:
    return ()


def _name(parser: _Parser) -> tuple[str, ...]:
    return (parser.name(),)


def _optional_name(parser: _Parser) -> tuple[str, ...]:
    return (parser.name(),) if parser.tokens.at_kind("word") and not parser.tokens.at("else") else ()


def _string(parser: _Parser) -> tuple[str, ...]:
    return (parser.tokens.expect_kind("string").text,)


def _number(parser: _Parser) -> tuple[str, ...]:
    sign = parser.tokens.accept("-", "+")
    return (("-" if sign and sign.text == "-" else "") + parser.tokens.expect_kind("number").text,)


def _integer(parser: _Parser) -> tuple[str, ...]:
    found = parser.tokens.current if parser.tokens.at_kind("number") else None
    if found is not None and not found.text.isdecimal() and found.text[:2].lower() != "0x":
        parser.tokens.fail(f"expected a whole number, found {parser.tokens.found()}")
    return _number(parser)


def _two_integers(parser: _Parser) -> tuple[str, ...]:
    return _integer(parser) + _integer(parser)


def _optional_number(parser: _Parser) -> tuple[str, ...]:
    return _number(parser) if parser.tokens.at_kind("number") or parser.tokens.at("-") else ()


def _optional_integer(parser: _Parser) -> tuple[str, ...]:
    return _integer(parser) if parser.tokens.at_kind("number") else ()


def _key(parser: _Parser) -> tuple[str, ...]:
    return (parser.tokens.expect_kind("word", "string", "number").text,)


def _words(parser: _Parser) -> tuple[str, ...]:
    found: list[str] = []
    while parser.tokens.at_kind("word", "string", "number"):
        found.append(parser.tokens.next().text)
    return tuple(found)


def _id_and_words(parser: _Parser) -> tuple[str, ...]:
    return (parser.name(), *_words(parser))


def _options(*known: str) -> _Argument:
    """Any of the words `known`, some with `: value`."""

    def options(parser: _Parser) -> tuple[str, ...]:
        found: list[str] = []
        while parser.tokens.at_kind("word"):
            option = parser.one_of(known)
            if parser.tokens.accept(":"):
                option += ":" + parser.tokens.expect_kind("string", "word", "number").text
            found.append(option)
        return tuple(found)

    return options


def _part(parser: _Parser) -> tuple[str, ...]:
    parts = ("namespace", "documenttype", "group", "number", "specific")
    return (parser.one_of(parts),) if parser.tokens.at_kind("word") else ()


_ARGUMENTS: Final[Mapping[str, _Argument]] = {
    **dict.fromkeys(("_", "base64decode", "base64encode", "clear_state", "echo", "false", "flatten"), _nothing),
    **dict.fromkeys(("exhex8encode", "exhex16encode", "exhex8floatencode", "exhex16doubleencode"), _nothing),
    **dict.fromkeys(("get_language", "hash", "hexdecode", "hexencode", "hostname", "lowercase", "normalize"), _nothing),
    **dict.fromkeys(("now", "optimize_predicate", "pack_bits", "set_language", "sleep", "this", "to_array"), _nothing),
    **dict.fromkeys(("to_bool", "to_byte", "to_double", "to_epoch_second", "to_float", "to_int"), _nothing),
    **dict.fromkeys(("to_long", "to_pos", "to_string", "to_uri", "trim", "true", "zcurve"), _nothing),
    **dict.fromkeys((*OUTPUTS, "passthrough", "input", "to_tensor"), _optional_name),
    **dict.fromkeys(("get_field", "get_var", "set_var"), _name),
    **dict.fromkeys(("join", "split"), _string),
    "random": _optional_integer,
    "binarize": _optional_number,
    "ngram": _integer,
    "substring": _two_integers,
    "get_value": _key,
    "embed": _words,
    "generate": _words,
    "chunk": _id_and_words,
    "documentid": _part,
    "exact": _options("max-length"),
    "tokenize": _options(
        "stem", "normalize", "max-length", "max-token-length", "max-occurrences", "keep-case", "profile"
    ),
    "busy_wait": _optional_number,
    "to_wset": _options("create_if_non_existent", "remove_if_zero"),
}
"""Keyword → how its arguments are written."""

_BLOCKS: Final = ("for_each", "guard", "if", "select_input", "switch")
KEYWORDS: Final = (*_ARGUMENTS, *_BLOCKS)
_COMPARATORS: Final = ("==", "!=", "<=", "<", ">=", ">")


class _Parser:
    """One pass over the tokens of one script."""

    def __init__(self, tokens: TokenStream) -> None:
        self.tokens = tokens
        self.depth = 0

    def script(self) -> Expression:
        start = self.tokens.position()
        statements = self.statements()
        self.tokens.expect_end()
        if not statements:
            self.tokens.fail("the script is empty")
        return Expression("script", (), statements, start)

    def statements(self) -> tuple[Expression, ...]:
        found: list[Expression] = []
        while not self.tokens.at_kind(END) and not self.tokens.at("}"):
            if self.tokens.accept(";"):
                continue
            found.append(self.statement())
            if not self.tokens.at_kind(END) and not self.tokens.at("}"):
                self.tokens.expect(";")
        return tuple(found)

    def statement(self) -> Expression:
        start = self.tokens.position()
        self.depth += 1
        if self.depth > limits.INDEXING_SCRIPT_DEPTH:
            self.tokens.fail(f"indexing scripts are nested deeper than {limits.INDEXING_SCRIPT_DEPTH}")
        operands = [self.choice()]
        while self.tokens.accept("|"):
            operands.append(self.choice())
        self.depth -= 1
        return Expression("statement", (), tuple(operands), start)

    def choice(self) -> Expression:
        return self.read_operands("choice", "||", self.concat)

    def concat(self) -> Expression:
        return self.read_operands("concat", ".", self.sum)

    def read_operands(self, keyword: str, operator: str, part: Callable[[], Expression]) -> Expression:
        operands = [part()]
        while self.tokens.accept(operator):
            operands.append(part())
        return operands[0] if len(operands) == 1 else Expression(keyword, (), tuple(operands), operands[0].position)

    def sum(self) -> Expression:
        return self.arithmetic(("+", "-"), self.product)

    def product(self) -> Expression:
        return self.arithmetic(("*", "/", "%"), self.value)

    def arithmetic(self, operators: tuple[str, ...], part: Callable[[], Expression]) -> Expression:
        operands, found = [part()], []
        while token := self.tokens.accept(*operators):
            found.append(token.text)
            operands.append(part())
        if not found:
            return operands[0]
        return Expression("arithmetic", tuple(found), tuple(operands), operands[0].position)

    def value(self) -> Expression:
        token = self.tokens.current
        position = self.tokens.position()
        if token.kind in ("string", "number") or token.text in ("-", "+"):
            return Expression("literal", (self.literal(),), (), position)
        if token.text == "(":
            self.tokens.next()
            inner = self.statement()
            self.tokens.expect(")")
            return Expression("parenthesis", (), (inner,), position)
        if token.text == "{":
            return self.block()
        if token.kind != "word":
            self.tokens.fail(f"expected an indexing expression, found {self.tokens.found()}")
        if token.text in _BLOCKS:
            self.tokens.next()
            return self.with_block(token.text, position)
        arguments = _ARGUMENTS.get(token.text)
        if arguments is None:
            self.tokens.fail(f"unknown indexing expression {token.text!r}{nearest(token.text, KEYWORDS)}")
        self.tokens.next()
        return Expression(token.text, arguments(self), (), position)

    def literal(self) -> str:
        if self.tokens.at_kind("string"):
            return self.tokens.next().text
        return _number(self)[0]

    def block(self) -> Expression:
        position = self.tokens.position()
        self.tokens.expect("{")
        statements = self.statements()
        self.tokens.expect("}")
        return Expression("script", (), statements, position)

    def with_block(self, keyword: str, position: Position) -> Expression:
        match keyword:
            case "if":
                return self.condition(position)
            case "select_input":
                return self.cases(keyword, position, lambda: self.tokens.expect_kind("word", "string").text)
            case "switch":
                return self.cases(keyword, position, self.switch_case)
        return Expression(keyword, (), (self.block(),), position)

    def condition(self, position: Position) -> Expression:
        self.tokens.expect("(")
        left = self.choice()
        comparator = self.tokens.expect(*_COMPARATORS).text
        right = self.choice()
        self.tokens.expect(")")
        operands = [left, right, self.block()]
        if self.tokens.accept("else"):
            operands.append(self.block())
        return Expression("if", (comparator,), tuple(operands), position)

    def cases(self, keyword: str, position: Position, label: Callable[[], str]) -> Expression:
        self.tokens.expect("{")
        labels: list[str] = []
        statements: list[Expression] = []
        while not self.tokens.accept("}"):
            if keyword == "select_input":
                self.tokens.accept("case")
            labels.append(label())
            self.tokens.expect(":")
            statements.append(self.statement())
            self.tokens.expect(";")
        if not labels:
            self.tokens.fail(f"{keyword} has no cases")
        return Expression(keyword, tuple(labels), tuple(statements), position)

    def switch_case(self) -> str:
        return self.tokens.next().text if self.tokens.at("default") else self.case()

    def case(self) -> str:
        self.tokens.expect("case", "default")
        return self.tokens.expect_kind("string").text

    def name(self) -> str:
        return self.tokens.expect_kind("word", "string").text.strip("\"'")

    def one_of(self, known: tuple[str, ...]) -> str:
        word = self.tokens.current.text
        if word not in known:
            self.tokens.fail(f"unknown option {word!r}{nearest(word, known)}")
        return self.tokens.next().text
