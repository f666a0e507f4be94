"""Parsers of ranking expressions, and of the tensor functions, literals, generators and slices within them.

`parse_expression` reads an expression, `parse_reference` the name of one feature or function, as in match-features.
Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from paperwasp import limits
from paperwasp.base.cache import Cache
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.errors import LanguageError
from paperwasp.ranking.tensor_functions import CHOICES, OF_TYPE, Parameter
from paperwasp.ranking.tensor_functions import FUNCTIONS as TENSOR_FUNCTIONS
from paperwasp.ranking.tree import (
    LEVELS,
    Call,
    Cell,
    Generate,
    If,
    Lambda,
    Membership,
    Named,
    Number,
    OfType,
    Operation,
    Prefix,
    RankNode,
    Reference,
    Slice,
    SlicePlace,
    String,
    Switch,
    TensorCall,
    TensorLiteral,
    Word,
    Words,
    operation,
    unquote,
)
from paperwasp.text.parsing import Lexicon, Token, TokenStream
from paperwasp.text.parsing.tokens import did_you_mean

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


def parse_expression(text: str, source: str = "") -> RankNode:
    """The tree of `text`; raises LanguageError, with the place, for what is wrong. Equal texts have the same tree."""
    known = _TREES.get(text)
    if known is None:
        known = _parse(text, source)
        _TREES.put(text, known, len(text))
    return known


def _parse(text: str, source: str) -> RankNode:
    parser = _Parser(_LEXICON.tokenize(text, source))
    try:
        node = parser.expression()
    except RecursionError:
        parser.tokens.fail("nested too deeply")
    parser.tokens.expect_end()
    return node


_TREES: Final[Cache[str, RankNode]] = Cache(size=limits.RANK_TREES_CHARACTERS)
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

    def expression(self) -> RankNode:
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

    def choices(self) -> tuple[RankNode, ...]:
        self.tokens.expect("[")
        return self.read_list("]")

    def read_list(self, closing: str) -> tuple[RankNode, ...]:
        """Reads expressions with commas between them, up to and with `closing`; at least one."""
        items = [self.expression()]
        while self.tokens.accept(","):
            items.append(self.expression())
        self.tokens.expect(closing, ",")
        return tuple(items)

    def operand(self) -> RankNode:
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

    def value(self) -> RankNode:
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

    def read_named(self, token: Token) -> RankNode:
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
        arguments: tuple[RankNode, ...] = ()
        if self.tokens.accept("(") and not self.tokens.accept(")"):
            arguments = self.arguments()
        outputs = []
        while self.tokens.accept("."):
            outputs.append(self.tokens.expect_kind("name", "number").text)
        return Reference(name.text, arguments, ".".join(outputs), start=name.start)

    def arguments(self) -> tuple[RankNode, ...]:
        """Reads the arguments of a feature or function, up to and with the closing parenthesis; at least one."""
        arguments = [self.argument()]
        while self.tokens.accept(","):
            arguments.append(self.argument())
        self.tokens.expect(")", ",")
        return tuple(arguments)

    def argument(self) -> RankNode:
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
        cases: list[tuple[RankNode, RankNode]] = []
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


def _reduce(operands: list[RankNode], pending: list[str], level: int) -> None:
    """Joins what binds tighter than `level`: run by run of one level, from the top of the stack."""
    while pending and LEVELS[pending[-1]] > level:
        run = 1
        while run < len(pending) and LEVELS[pending[-run - 1]] == LEVELS[pending[-1]]:
            run += 1
        operators, parts = pending[-run:], operands[-run - 1 :]
        del pending[-run:]
        operands[-run - 1 :] = [_join(parts, operators)]


def _join(parts: list[RankNode], operators: list[str]) -> RankNode:
    if operators[0] != "^":
        return operation(parts, operators, parts[0].start)
    node = parts[-1]
    for part in reversed(parts[:-1]):
        node = Operation((part, node), ("^",), start=part.start)
    return node


# Tensors

_LAMBDA_PARAMETERS: Final = {"lambda": 1, "lambda2": 2}


class TensorParser:
    """Reads function calls, literals, generators and slices. `expression` reads the expressions within."""

    def __init__(self, tokens: TokenStream, expression: Callable[[], RankNode]) -> None:
        self.tokens = tokens
        self.expression = expression

    def starts(self, name: Token) -> bool:
        """Tell whether `name`, which is passed, begins a tensor function, literal or generator."""
        if name.text == "tensor":
            return self.tokens.at("<", "(")
        if name.text in OF_TYPE:
            return self.tokens.at("(") and self.tokens.peek(2).text == "["
        return name.text in TENSOR_FUNCTIONS and self.tokens.at("(")

    def parse(self, name: Token) -> RankNode:
        """Read the node that `name` begins."""
        if name.text == "tensor":
            return self.read_typed(name)
        if name.text in OF_TYPE:
            return OfType(name.text, self.type(name), start=name.start)
        if name.text in ("max", "min"):
            return self.least_or_most(name)
        return self.call(name)

    # Calls

    def call(self, name: Token) -> TensorCall:
        function = TENSOR_FUNCTIONS[name.text]
        self.tokens.expect("(")
        arguments: list[RankNode] = []
        required = len(function.parameters) - function.optional
        for number, parameter in enumerate(function.parameters):
            if parameter == "dimensions":
                while self.tokens.accept(","):
                    arguments.append(self.word("dimension"))
                break
            if number >= required and self.tokens.at(")"):
                break
            if number:
                self.tokens.expect(",")
            arguments.append(self.argument(parameter))
        self.tokens.expect(")")
        return TensorCall(name.text, tuple(arguments), start=name.start)

    def argument(self, parameter: Parameter) -> RankNode:
        if parameter == "tensor":
            return self.expression()
        if parameter == "names":
            return self.names()
        if parameter in _LAMBDA_PARAMETERS:
            return self.function(_LAMBDA_PARAMETERS[parameter])
        return self.word(parameter)

    def word(self, parameter: Parameter) -> Word:
        token = self.tokens.expect_kind("name", "number")
        choices = CHOICES.get(parameter)
        if choices and token.text not in choices:
            self.tokens.fail(
                f"expected {', '.join(choices)}; found {token.text!r}{did_you_mean(token.text, choices)}", token
            )
        return Word(token.text, start=token.start)

    def names(self) -> Words:
        start = self.tokens.current.start
        if not self.tokens.accept("("):
            return Words((self.tokens.expect_kind("name", "number").text,), start=start)
        words = [self.tokens.expect_kind("name", "number").text]
        while self.tokens.accept(","):
            words.append(self.tokens.expect_kind("name", "number").text)
        self.tokens.expect(")")
        return Words(tuple(words), start=start)

    def function(self, parameters: int) -> Lambda:
        start = self.tokens.expect("f")
        self.tokens.expect("(")
        names = [self.tokens.expect_kind("name").text]
        while self.tokens.accept(","):
            names.append(self.tokens.expect_kind("name").text)
        self.tokens.expect(")")
        if len(names) != parameters or len(set(names)) != parameters:
            self.tokens.fail(f"this function takes {parameters} parameter(s) of different names", start)
        self.tokens.expect("(")
        body = self.expression()
        self.tokens.expect(")")
        return Lambda(tuple(names), body, start=start.start)

    def least_or_most(self, name: Token) -> RankNode:
        """`max(a, b)` compares numbers or cells; with any other number of arguments the rest are dimensions."""
        self.tokens.expect("(")
        arguments = [self.expression()]
        while self.tokens.accept(","):
            arguments.append(self.expression())
        self.tokens.expect(")")
        if len(arguments) == 2:
            return Call(name.text, tuple(arguments), start=name.start)
        return as_reduction(Call(name.text, tuple(arguments), start=name.start)) or self.tokens.fail(
            f"{name.text} takes two expressions, or one and the dimensions that it reduces", name
        )

    # Types, literals, generators

    def type(self, name: Token) -> TensorType:
        """The tensor type that follows `name`."""
        begin = self.tokens.current.start
        if self.tokens.accept("<"):
            self.tokens.expect_kind("name")
            self.tokens.expect(">")
        self.tokens.expect("(")
        while not self.tokens.at(")") and not self.tokens.at_kind("end"):
            self.tokens.next()
        end = self.tokens.expect(")").end
        try:
            type_ = TensorType.parse(f"tensor{self.tokens.text[begin:end]}")
        except ValueError as error:
            self.tokens.fail(str(error), name)
        if name.text in OF_TYPE and (type_.mapped or not all(type_.shape)):
            self.tokens.fail(f"{name.text} makes a tensor of indexed dimensions with sizes", name)
        return type_

    def read_typed(self, name: Token) -> RankNode:
        type_ = self.type(name)
        if self.tokens.accept(":"):
            return self.literal(type_, name)
        if type_.mapped or not all(type_.shape):
            self.tokens.fail("a tensor is generated with indexed dimensions that have sizes", name)
        self.tokens.expect("(", ":")
        body = self.expression()
        self.tokens.expect(")")
        return Generate(type_, body, start=name.start)

    def literal(self, type_: TensorType, name: Token) -> TensorLiteral:
        if 0 in type_.shape:
            self.tokens.fail(f"a value of {type_} needs the sizes of all indexed dimensions", name)
        if math.prod(type_.shape) > limits.FIELD_TENSOR_CELLS:
            most = f"{limits.FIELD_TENSOR_CELLS} (FIELD_TENSOR_CELLS in paperwasp.limits)"
            self.tokens.fail(f"the cells of the indexed dimensions of {type_} are more than {most}", name)
        if self.tokens.at("{") and (self.tokens.peek().text in ("{", "}")):
            cells = self.cells(type_)
        else:
            order = [*type_.mapped, *type_.indexed]
            cells = [
                Cell(tuple(address[d.name] for d in type_.dimensions), value, start=value.start)
                for address, value in self.read_nested(order)
            ]
        addresses = {cell.address for cell in cells}
        if len(addresses) < len(cells):
            self.tokens.fail("a cell is given twice", name)
        return TensorLiteral(type_, tuple(cells), start=name.start)

    def cells(self, type_: TensorType) -> list[Cell]:
        """`{ {dimension:label, …}:expression, … }`"""
        cells = []
        self.tokens.expect("{")
        while not self.tokens.accept("}"):
            begin = self.tokens.expect("{")
            address: dict[str, str] = {}
            while not self.tokens.accept("}"):
                dimension = self.tokens.expect_kind("name", "number").text
                self.tokens.expect(":")
                address[dimension] = self.label()
                self.separate("}")
            if sorted(address) != [d.name for d in type_.dimensions]:
                self.tokens.fail(f"an address in {type_} names each of its dimensions", begin)
            for d in type_.indexed:
                self.check_index(address[d.name], d, begin)
            self.tokens.expect(":")
            cells.append(Cell(tuple(address[d.name] for d in type_.dimensions), self.expression(), start=begin.start))
            self.separate("}")
        return cells

    def read_nested(self, order: list[Dimension]) -> list[tuple[dict[str, str], RankNode]]:
        """Reads expressions in one level of brackets a dimension: braces with labels, or brackets with all values."""
        if not order:
            return [({}, self.expression())]
        dimension, *inner = order
        begin = self.tokens.expect("{" if dimension.is_mapped else "[")
        found: list[tuple[dict[str, str], RankNode]] = []
        closing = "}" if dimension.is_mapped else "]"
        places = 0
        while not self.tokens.accept(closing):
            label = str(places)
            if dimension.is_mapped:
                label = self.label()
                self.tokens.expect(":")
            found += [({dimension.name: label, **address}, value) for address, value in self.read_nested(inner)]
            self.separate(closing)
            places += 1
        if not dimension.is_mapped and places != dimension.size:
            self.tokens.fail(f"expected {dimension.size} value(s) in dimension {dimension}, found {places}", begin)
        return found

    # Slices

    def slice(self, tensor: RankNode) -> Slice:
        """The slice of `tensor` that the current bracket begins."""
        if self.tokens.accept("["):
            index = self.expression()
            self.tokens.expect("]")
            return Slice(tensor, (SlicePlace("", index=index, start=index.start),), start=tensor.start)
        begin = self.tokens.expect("{")
        places = [self.place()]
        while self.tokens.accept(","):
            places.append(self.place())
        self.tokens.expect("}")
        dimensions = [place.dimension for place in places]
        if len(places) > 1 and ("" in dimensions or len(set(dimensions)) < len(places)):
            self.tokens.fail("a slice of several dimensions names each of them, once", begin)
        return Slice(tensor, tuple(places), start=tensor.start)

    def place(self) -> SlicePlace:
        start = self.tokens.current.start
        dimension = ""
        if self.tokens.peek().text == ":":
            dimension = self.tokens.expect_kind("name", "number").text
            self.tokens.expect(":")
        if self.tokens.at_kind("name", "number", "string") and self.tokens.peek().text in (",", "}"):
            return SlicePlace(dimension, self.label(), start=start)
        return SlicePlace(dimension, index=self.expression(), start=start)

    # Parts

    def label(self) -> str:
        token = self.tokens.expect_kind("name", "number", "string")
        return unquote(token.text) if token.kind == "string" else token.text

    def check_index(self, label: str, dimension: Dimension, at: Token) -> None:
        if not label.isdecimal() or len(label) > 10 or int(label) >= (dimension.size or 0):
            self.tokens.fail(f"{label!r} is no index of dimension {dimension}", at)

    def separate(self, closing: str) -> None:
        if not self.tokens.at(closing):
            self.tokens.expect(",", closing)


def as_reduction(call: Call) -> TensorCall | None:
    """`max(t, x, …)` as a reduction of dimensions; None where an argument can be none."""
    tensor, *dimensions = call.arguments
    words = [Word(str(d), start=d.start) for d in dimensions if isinstance(d, Reference) and str(d) == d.name]
    if len(words) < len(dimensions):
        return None
    return TensorCall(call.function, (tensor, *words), start=call.start)
