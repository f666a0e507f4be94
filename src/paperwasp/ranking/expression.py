"""Parser of ranking expressions; `ranking.tensor_expression` has the tensor functions, literals and slices.

`parse_expression` reads an expression, `parse_reference` the name of one feature or function, as in match-features.
Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html
"""

from __future__ import annotations

from typing import Final

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.ranking.tensor_expression import TensorParser
from paperwasp.ranking.tree import (
    LEVELS,
    Call,
    If,
    Membership,
    Named,
    Node,
    Number,
    Operation,
    Prefix,
    Reference,
    String,
    Switch,
    operation,
    unquote,
)
from paperwasp.text.parsing import Lexicon, Token, TokenStream
from paperwasp.text.parsing.text_memory import TextMemory

_LEXICON = Lexicon(
    {
        "_space": r"[ \t\r\n\f]+|#[^\n]*",
        "number": r"(?:\d+\.\d*(?:[eE][+-]?\d+)?[fFdD]?|\d+(?:[eE][+-]?\d+)?)(?![A-Za-z0-9_@$])",
        "name": r"[A-Za-z0-9_@][A-Za-z0-9_@$]*",
        "string": r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^'\\]|\\.)*'",
        "operator": r"\|\||&&|==|!=|~=|<=|>=|[-+*/%^<>!]",
        "punctuation": r"[()\[\]{},.:$]",
    }
)


def _words(text: str) -> list[str]:
    return text.split()


FUNCTIONS: Final[dict[str, int]] = {
    **dict.fromkeys(
        _words(
            "abs acos asin atan ceil cos cosh elu erf exp fabs floor isNan log log10 relu round sigmoid sign sin sinh"
            " sqrt square tan tanh"
        ),
        1,
    ),
    **dict.fromkeys(_words("atan2 bit fmod hamming ldexp max min pow"), 2),
}
"""The functions of numbers, and of tensors cell by cell, and how many arguments each takes."""


def parse_expression(text: str, source: str = "") -> Node:
    """The tree of `text`; raises LanguageError, with the place, for what is wrong. Equal texts have the same tree."""
    known = _TREES.get(text)
    if known is None:
        known = _parse(text, source)
        _TREES.add(text, known, len(text))
    return known


def _parse(text: str, source: str) -> Node:
    parser = _Parser(_LEXICON.tokenize(text, source))
    try:
        node = parser.expression()
    except RecursionError:
        parser.tokens.fail("nested too deeply")
    parser.tokens.expect_end()
    return node


_TREES: Final[TextMemory[str, Node]] = TextMemory(limits.RANK_TREES_CHARACTERS, limits.RANK_TREES_CHARACTERS)
"""The profiles of a package share most of their texts."""


def parse_reference(text: str, source: str = "") -> Reference:
    """The one feature or function that `text` names, such as `bm25(title)` or `term(0).weight`."""
    node = parse_expression(text, source)
    if isinstance(node, Reference):
        return node
    raise LanguageError(f"expected the name of a rank feature or function, found {text.strip()!r}")


class _Parser:
    """Parses operators with a stack, so that nesting costs few frames; a run of one level becomes one Operation."""

    def __init__(self, tokens: TokenStream) -> None:
        self.tokens = tokens
        self.tensors = TensorParser(tokens, self.expression)

    def expression(self) -> Node:
        with self.tokens.nested():
            operands = [self.operand()]
            pending: list[str] = []
            while self.tokens.at(*LEVELS):
                operator = self.tokens.next().text
                if operator == "in":
                    _reduce(operands, pending, LEVELS["in"] - 1)
                    operands[-1] = Membership(operands[-1], self.choices(), start=operands[-1].start)
                else:
                    _reduce(operands, pending, LEVELS[operator])
                    pending.append(operator)
                    operands.append(self.operand())
            _reduce(operands, pending, 0)
            return operands[0]

    def choices(self) -> tuple[Node, ...]:
        self.tokens.expect("[")
        return self.read_list("]")

    def read_list(self, closing: str) -> tuple[Node, ...]:
        """Reads expressions with commas between them, up to and with `closing`; at least one."""
        items = [self.expression()]
        while self.tokens.accept(","):
            items.append(self.expression())
        self.tokens.expect(closing, ",")
        return tuple(items)

    def operand(self) -> Node:
        prefixes = []
        while token := self.tokens.accept("-", "!"):
            prefixes.append(token)
        node = self.value()
        slices = 0
        while self.tokens.at("{", "[") and not isinstance(node, Number | String):
            node = self.tensors.slice(node)
            slices += 1
            if slices > limits.TENSOR_DIMENSIONS:
                self.tokens.fail(f"more than {limits.TENSOR_DIMENSIONS} slices of one tensor")
        for prefix in reversed(prefixes):
            node = Prefix(prefix.text, node, start=prefix.start)
        return node

    def value(self) -> Node:
        token = self.tokens.next()
        if token.kind == "number":
            return Number(float(token.text.rstrip("fFdD")), token.text, start=token.start)
        if token.kind == "string":
            return String(unquote(token.text), start=token.start)
        if token.kind == "name":
            return self.read_named(token)
        if token.text == "(":
            node = self.expression()
            self.tokens.expect(")")
            return node
        if token.text == "$":
            name = self.tokens.expect_kind("name")
            return Reference("query", (Reference(name.text, start=name.start),), start=token.start)
        found = repr(token.text) if token.text else "the end"
        raise LanguageError(f"expected a value, found {found}", self.tokens.position(token))

    def read_named(self, token: Token) -> Node:
        """Reads what a name starts: a function, a tensor function, a keyword, or a reference."""
        called = self.tokens.at("(")
        if called and token.text == "if":
            return self.condition(token)
        if called and token.text == "switch":
            return self.switch(token)
        if self.tensors.starts(token):
            return self.tensors.parse(token)
        if called and token.text in FUNCTIONS:
            return self.call(token)
        if token.text in ("true", "false") and not called:
            return Number(float(token.text == "true"), token.text, start=token.start)
        return self.reference(token)

    def reference(self, name: Token) -> Reference:
        arguments: tuple[Node, ...] = ()
        if self.tokens.accept("(") and not self.tokens.accept(")"):
            arguments = self.arguments()
        outputs = []
        while self.tokens.accept("."):
            outputs.append(self.tokens.expect_kind("name", "number").text)
        return Reference(name.text, arguments, ".".join(outputs), start=name.start)

    def arguments(self) -> tuple[Node, ...]:
        """Reads the arguments of a feature or function, up to and with the closing parenthesis; at least one."""
        arguments = [self.argument()]
        while self.tokens.accept(","):
            arguments.append(self.argument())
        self.tokens.expect(")", ",")
        return tuple(arguments)

    def argument(self) -> Node:
        if self.tokens.at_kind("name") and self.tokens.peek().text == ":":
            name = self.tokens.next()
            self.tokens.expect(":")
            return Named(name.text, self.expression(), start=name.start)
        return self.expression()

    def call(self, name: Token) -> Call:
        self.tokens.expect("(")
        arguments = self.read_list(")")
        expected = FUNCTIONS[name.text]
        if len(arguments) != expected:
            self.tokens.fail(f"{name.text} takes {expected} argument(s), not {len(arguments)}", name)
        return Call(name.text, arguments, start=name.start)

    def condition(self, keyword: Token) -> If:
        self.tokens.expect("(")
        condition = self.expression()
        self.tokens.expect(",")
        if_true = self.expression()
        self.tokens.expect(",")
        if_false = self.expression()
        probability = None
        if self.tokens.accept(","):
            token = self.tokens.expect_kind("number")
            probability = Number(float(token.text), token.text, start=token.start)
        self.tokens.expect(")")
        return If(condition, if_true, if_false, probability, start=keyword.start)

    def switch(self, keyword: Token) -> Switch:
        self.tokens.expect("(")
        discriminant = self.expression()
        self.tokens.expect(")")
        self.tokens.expect("{")
        cases: list[tuple[Node, Node]] = []
        while not cases or self.tokens.at("case"):
            self.tokens.expect("case")
            value = self.expression()
            self.tokens.expect(":")
            cases.append((value, self.expression()))
            self.tokens.expect(",")
        self.tokens.expect("default")
        self.tokens.expect(":")
        default = self.expression()
        self.tokens.expect("}")
        return Switch(discriminant, tuple(cases), default, start=keyword.start)


def _reduce(operands: list[Node], pending: list[str], level: int) -> None:
    """Joins what binds tighter than `level`: run by run of one level, from the top of the stack."""
    while pending and LEVELS[pending[-1]] > level:
        run = 1
        while run < len(pending) and LEVELS[pending[-run - 1]] == LEVELS[pending[-1]]:
            run += 1
        operators, parts = pending[-run:], operands[-run - 1 :]
        del pending[-run:]
        operands[-run - 1 :] = [_join(parts, operators)]


def _join(parts: list[Node], operators: list[str]) -> Node:
    if operators[0] != "^":
        return operation(parts, operators, parts[0].start)
    node = parts[-1]
    for part in reversed(parts[:-1]):
        node = Operation((part, node), ("^",), start=part.start)
    return node
