"""Texts to selections.

From weak to strong: or; and; not; one comparison; + -; * /; %; functions. Parentheses hold conditions and values alike,
so one precedence-climbing parser reads both and asks afterwards which of the two it has.

Vespa: https://docs.vespa.ai/en/reference/writing/document-selector-language.html
Differs: a regular expression that is none is refused here; in Vespa it matches nothing. A newline is white space, and
numbers may have an exponent without a point, as the page says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.document.selection.tree import (
    ID_PARTS,
    LEVELS,
    And,
    Arithmetic,
    Comparison,
    ConditionNode,
    Constant,
    FieldValue,
    FunctionCall,
    IdPart,
    Literal,
    Not,
    Now,
    Or,
    Selection,
    SelectionNode,
    Step,
    TypeIs,
    ValueNode,
    Variable,
)
from paperwasp.document.selection.values import FUNCTIONS, PatternError, regular_expression, wrap_to_int64
from paperwasp.document.updates import Index, Key, Member
from paperwasp.errors import InvalidInput, LanguageError, TooLarge
from paperwasp.text.parsing.tokens import END, Lexicon, Token, TokenStream, position_of

_LEXICON: Final = Lexicon(
    {
        "_space": r"[ \t\r\n\f]+",
        "hex": r"0[xX][0-9a-fA-F]+",
        "float": r"[0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)[fFdD]?",
        "integer": r"[0-9]+",
        "string": r'"(?:[^"\\]|\\.)*"|' r"'(?:[^'\\]|\\.)*'",
        "unclosed": r"[\"'].*",
        "identifier": r"[a-zA-Z_][a-zA-Z0-9_]*",
        "symbol": r"==|=~|!=|<=|>=|[-=<>+*/%().,{}\[\]$]",
    }
)
_NUMBERS: Final = ("integer", "float", "hex")
_COMPARISONS: Final = frozenset(name for name, level in LEVELS.items() if level == LEVELS["=="])
_WORDS: Final = {"null": None, "true": True, "false": False}
_MOST_DIGITS: Final = 100
_TOO_DEEP: Final = f"nested deeper than {limits.SELECTION_DEPTH} levels"
_ESCAPE: Final = compile_later(rb"\\(x[0-9a-fA-F]{2}|.|$)", re.DOTALL)
_ESCAPED: Final = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"f": b"\f", b'"': b'"', b"'": b"'", b"\\": b"\\"}


def parse_selection(text: str, source: str = "") -> Selection:
    """The selection that `text` says; nothing at all selects everything. `source` names the text in errors.

    Errors: LanguageError with the place; TooLarge.
    """
    if len(text) > limits.SELECTION_CHARACTERS:
        raise TooLarge(f"The selection has {len(text)} characters; at most {limits.SELECTION_CHARACTERS} are taken")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"illegal code point 0x{ord(text[error.start]):X}"
        raise LanguageError(message, position_of(text, error.start, source)) from None
    parser = _Parser(_LEXICON.tokenize(text, source))
    return Selection(parser.whole(), text, source)


def check_condition_length(condition: str) -> None:
    """Errors: InvalidInput for a condition that is longer than is read again and again."""
    if len(condition) > limits.CONDITION_CHARACTERS:
        raise InvalidInput(f"A condition of {len(condition)} characters; at most {limits.CONDITION_CHARACTERS}")


class _Parser:
    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens
        self._patterns = 0
        self._depth = 0

    def whole(self) -> ConditionNode:
        tokens = self._tokens
        if tokens.at_kind(END):
            return Constant(True)
        root = self._condition(self._expression(1))
        if not tokens.at_kind(END):
            tokens.fail(f"expected an operator or the end, found {tokens.found()}")
        return root

    def _expression(self, level: int) -> SelectionNode:
        """Reads the expression that stands here, as far as its operators bind at least as strongly as `level`."""
        tokens = self._tokens
        first = tokens.current
        if level <= LEVELS["not"] and self._word() == "not":
            tokens.next()
            with self._in_nesting():
                operand = self._condition(self._expression(LEVELS["not"]))
            left: SelectionNode = self._shallow(Not(operand, start=first.start))
        else:
            left = self._read_calls(self._operand())
        while LEVELS.get(operator := self._word(), 0) >= level and operator != "not":
            left = self._shallow(self._binary(operator, left))
        return left

    def _binary(self, operator: str, left: SelectionNode) -> SelectionNode:
        """`left`, the operator that stands here, and what is to its right; a whole chain of `and` or `or`."""
        tokens = self._tokens
        level = LEVELS[operator]
        if operator in ("and", "or"):
            operands = [self._condition(left)]
            while self._word() == operator:
                tokens.next()
                operands.append(self._condition(self._expression(level + 1)))
            return (And if operator == "and" else Or)(tuple(operands), start=left.start)
        if operator in _COMPARISONS and isinstance(left, ConditionNode) and not isinstance(left, TypeIs):
            tokens.fail(f"expected 'and', 'or' or the end, found {tokens.found()}")
        value = self._value(left)
        sign = tokens.next()
        right = self._value(self._expression(level + 1))
        if operator in _COMPARISONS:
            if operator == "=~":
                self._check_pattern(right)
            return Comparison(operator, value, right, start=left.start)
        if IdPart("bucket") in (value, right):
            tokens.fail("no arithmetic is allowed on a value of type bucket", sign)
        return Arithmetic(operator, value, right, start=left.start)

    def _word(self) -> str:
        """The current token's text, keywords in lower case."""
        token = self._tokens.current
        return token.text.lower() if token.kind == "identifier" else token.text if token.kind == "symbol" else ""

    def _condition(self, node: SelectionNode) -> ConditionNode:
        if isinstance(node, ConditionNode):
            return node
        if isinstance(node, FieldValue):
            return Comparison("!=", node, Literal(None), start=node.start)
        if isinstance(node, Literal) and isinstance(node.value, bool):
            return Constant(node.value, start=node.start)
        self._fail("expected field spec, doctype, bool or comparison, found only a value", node)

    def _value(self, node: SelectionNode) -> ValueNode:
        if isinstance(node, ValueNode):
            return node
        if isinstance(node, TypeIs):
            self._fail(f"document type '{node}' has no value: expected a field of it, '{node}.<field>'", node)
        self._fail("expected a value, found a condition", node)

    def _fail(self, message: str, node: SelectionNode) -> NoReturn:
        raise LanguageError(message, position_of(self._tokens.text, node.start, self._tokens.source))

    def _check_pattern(self, node: ValueNode) -> None:
        """That a regular expression in the text is one; what is computed is only known document by document."""
        if not isinstance(node, Literal) or not isinstance(node.value, str):
            return
        self._patterns += 1
        if self._patterns > limits.SELECTION_PATTERNS:
            self._fail(f"more than {limits.SELECTION_PATTERNS} regular expressions", node)
        try:
            regular_expression(node.value)
        except PatternError as error:
            self._fail(f"not a regular expression: {error}", node)

    def _operand(self) -> SelectionNode:
        tokens = self._tokens
        token = tokens.current
        if token.kind in _NUMBERS or (token.text in ("+", "-") and tokens.peek().kind in _NUMBERS):
            return self._number()
        if token.kind == "string":
            tokens.next()
            return Literal(self._unquote(token), start=token.start)
        if token.kind == "unclosed":
            tokens.fail("the string that begins here does not end")
        if tokens.accept("("):
            with self._in_nesting():
                inner = self._expression(1)
            if not tokens.accept(")"):
                tokens.fail(f"expected an operator or ')', found {tokens.found()}")
            return inner
        word = self._word()
        if token.kind != "identifier" or word in ("and", "or", "not"):
            if token.text == "$":
                tokens.fail("a variable has no value outside of a field path")
            tokens.fail(f"expected a condition or a value, found {tokens.found()}")
        if word in _WORDS:
            tokens.next()
            return Literal(_WORDS[word], start=token.start)
        if word == "id":
            return self._id()
        if token.text == "now" and tokens.peek().text == "(":
            tokens.next()
            self._no_arguments()
            return Now(start=token.start)
        return self._type_or_field()

    def _number(self) -> Literal:
        tokens = self._tokens
        first = tokens.current
        sign = -1 if first.text == "-" else 1
        tokens.accept("+", "-")
        token = tokens.next()
        if token.kind == "float":
            return Literal(sign * float(token.text.rstrip("fFdD")), start=first.start)
        if token.kind == "hex":
            number = int(token.text, 16) if len(token.text) <= 18 else 1 << 64
            if number >= 1 << 64:
                tokens.fail(f"Not a valid 64-bit hex integer: {token.text[:_MOST_DIGITS]}", token)
            return Literal(wrap_to_int64(sign * number), start=first.start)
        number = sign * int(token.text[:_MOST_DIGITS])
        if len(token.text) > _MOST_DIGITS or number != wrap_to_int64(number):
            tokens.fail(f"Not a valid signed 64-bit integer: {token.text[:_MOST_DIGITS]}", token)
        return Literal(number, start=first.start)

    def _unquote(self, token: Token) -> str:
        """The text of a string. Its escapes stand for bytes of UTF-8."""

        def unescape(found: re.Match[bytes]) -> bytes:
            escape = found[1]
            if len(escape) == 3:
                return bytes([int(escape[1:], 16)])
            if escape not in _ESCAPED:
                at = token.start + 1 + len(content[: found.start()].decode())
                problem = f"Illegal escape sequence \\{escape.decode(errors='replace')} found"
                raise LanguageError(problem, position_of(self._tokens.text, at, self._tokens.source))
            return _ESCAPED[escape]

        content = token.text[1:-1].encode()
        if b"\\" not in content:
            return token.text[1:-1]
        try:
            return _ESCAPE.sub(unescape, content).decode()
        except UnicodeDecodeError:
            self._tokens.fail("the bytes that this string says are not UTF-8", token)

    def _id(self) -> SelectionNode:
        tokens = self._tokens
        first = tokens.next()
        if not tokens.at(".") or tokens.peek(2).text == "(":
            return IdPart("", start=first.start)
        tokens.next()
        part = self._word()
        if part not in ID_PARTS or not part:
            tokens.fail(f"expected one of {', '.join(ID_PARTS[1:])}, found {tokens.found()}")
        tokens.next()
        return IdPart(part, start=first.start)

    def _type_or_field(self) -> SelectionNode:
        tokens = self._tokens
        first = tokens.next()
        if not tokens.at("."):
            return TypeIs(first.text, start=first.start)
        tokens.next()
        name = self._identifier("the name of a field")
        if tokens.at("("):
            tokens.fail(f"Cannot call function '{name.text}' directly on document type", name)
        steps: list[Step] = []
        while (step := self._step()) is not None:
            steps.append(step)
        return FieldValue(first.text, name.text, tuple(steps), start=first.start)

    def _step(self) -> Step | None:
        tokens = self._tokens
        if tokens.at(".") and tokens.peek(2).text != "(":
            tokens.next()
            return Member(self._identifier("the name of a field").text)
        if tokens.accept("{"):
            entry = self._variable() or Key(self._key())
            tokens.expect("}")
            return entry
        if tokens.accept("["):
            element = self._variable() or Index(self._index())
            tokens.expect("]")
            return element
        return None

    def _variable(self) -> Variable | None:
        if not self._tokens.accept("$"):
            return None
        return Variable(self._identifier("the name of a variable").text)

    def _key(self) -> str:
        tokens = self._tokens
        sign = "-" if tokens.peek().kind in _NUMBERS and tokens.accept("-") else ""
        token = tokens.current
        if token.kind not in (*_NUMBERS, "identifier", "string") or (sign and token.kind not in _NUMBERS):
            tokens.fail(f"expected a key or a variable, found {tokens.found()}")
        tokens.next()
        return self._unquote(token) if token.kind == "string" else sign + token.text

    def _index(self) -> int:
        tokens = self._tokens
        token = tokens.current
        if token.kind != "integer":
            tokens.fail(f"expected an index or a variable, found {tokens.found()}")
        tokens.next()
        if len(token.text) > _MOST_DIGITS or int(token.text) >= 1 << 31:
            tokens.fail(f"Not a valid index: {token.text[:_MOST_DIGITS]}", token)
        return int(token.text)

    def _read_calls(self, node: SelectionNode) -> SelectionNode:
        """Reads the calls of functions that follow a value."""
        tokens = self._tokens
        while tokens.at("."):
            dot = tokens.next()
            name = self._identifier("the name of a function")
            if name.text not in FUNCTIONS:
                tokens.fail(f"No function '{name.text}' exists; there are {', '.join(FUNCTIONS)}", name)
            self._no_arguments()
            operand = self._value(node)
            if operand == IdPart("bucket"):
                tokens.fail("No function calls are allowed on value of type bucket", dot)
            node = self._shallow(FunctionCall(name.text, operand, start=node.start))
        return node

    @contextmanager
    def _in_nesting(self) -> Iterator[None]:
        """Counts one level of the text's nesting, so that none can exhaust the stack."""
        self._depth += 1
        if self._depth > limits.SELECTION_DEPTH:
            self._tokens.fail(_TOO_DEEP)
        yield
        self._depth -= 1

    def _shallow(self, node: SelectionNode) -> SelectionNode:
        """The node, if it is nested no deeper than who walks the tree can go."""
        if node.depth > limits.SELECTION_DEPTH:
            self._fail(_TOO_DEEP, node)
        return node

    def _no_arguments(self) -> None:
        self._tokens.expect("(")
        self._tokens.expect(")")

    def _identifier(self, what: str) -> Token:
        tokens = self._tokens
        if not tokens.at_kind("identifier"):
            tokens.fail(f"expected {what}, found {tokens.found()}")
        return tokens.next()
