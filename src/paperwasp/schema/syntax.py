"""Schema text → syntax tree, by walking the table of `grammar`.

`expression: …` and the like hold other languages, which are cut out whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.errors import LanguageError, Position
from paperwasp.schema.grammar import BLOCKS, PROFILE_FILE, SCHEMA_FILE, Block, Element, HeaderPart, Value, blocks_with
from paperwasp.schema.tree import SchemaNode, dump
from paperwasp.text.parsing import Lexicon, Token, TokenStream
from paperwasp.text.parsing.tokens import END, did_you_mean

__all__ = ["SchemaNode", "dump", "parse_profile_text", "parse_schema_text"]


LEXICON: Final = Lexicon(
    {
        "_space": r"\s+",
        "_comment": r"#[^\n]*",
        "string": r"\"[^\"\n]*\"|'[^'\n]*'",
        "word": r"[A-Za-z_$][A-Za-z0-9_$]*(?:[-.]+[A-Za-z0-9_]+)*",
        "number": r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?L?",
        "other": r".",
    }
)

_NAME = compile_later(r"[A-Za-z_][A-Za-z0-9_]*")
_FUNCTION_NAME = compile_later(r"[A-Za-z_][A-Za-z0-9_]*\$?")
_PROFILE_NAME = compile_later(r"[A-Za-z_][A-Za-z0-9_.-]*")
_DASHED_NAME = compile_later(r"[A-Za-z_][A-Za-z0-9_-]*")
_PATH = compile_later(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")
_INTEGER = compile_later(r"-?[0-9]+L?")
_INPUT_TYPES = ("double", "float", "long", "string", "tensor")


def parse_schema_text(text: str, source: str) -> SchemaNode:
    """The tree of a schema file: a `schema` or a `document`. Raises LanguageError; SyntaxMistakes for several."""
    return _Parser(LEXICON.tokenize(text, source)).file(SCHEMA_FILE)


def parse_profile_text(text: str, source: str) -> SchemaNode:
    """The tree of a rank profile file: one `rank-profile`. Errors as those of `parse_schema_text`."""
    return _Parser(LEXICON.tokenize(text, source)).file(PROFILE_FILE)


class SyntaxMistakes(LanguageError):
    """All mistakes of a file that has several, one a line."""

    def __init__(self, mistakes: Sequence[LanguageError]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)


class _Hopeless(LanguageError):
    """A mistake after which there is nothing to go on with."""


class _Draft(Struct):
    """A node in the making."""

    keyword: str
    position: Position
    name: str = ""
    type: str = ""
    inherits: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    inline: bool = False
    values: tuple[str, ...] = ()
    value_position: Position | None = None
    children: list[SchemaNode] = field(default_factory=list)

    def node(self) -> SchemaNode:
        return SchemaNode(
            self.keyword,
            self.position,
            self.name,
            self.type,
            self.inherits,
            self.arguments,
            self.inline,
            self.values,
            self.value_position,
            tuple(self.children),
        )


class _Parser:
    """One pass over the tokens of one file. After a mistake in an element it goes on with the next one."""

    def __init__(self, tokens: TokenStream) -> None:
        self.tokens = tokens
        self.mistakes: list[LanguageError] = []

    def file(self, block: str) -> SchemaNode:
        if self.tokens.at_kind(END):
            self.tokens.fail(f"expected {' or '.join(BLOCKS[block])}, found the end")
        try:
            node = self.element(block)
            self.tokens.expect_end()
        except LanguageError as error:
            self.mistakes.append(error)
        if len(self.mistakes) > 1:
            raise SyntaxMistakes(self.mistakes)
        if self.mistakes:
            raise self.mistakes[0]
        return node

    # Elements and blocks

    def element(self, block: str) -> SchemaNode:
        """One element of `block`, at the current token."""
        token = self.tokens.current
        elements = BLOCKS[block]
        if token.kind != "word":
            self.tokens.fail(f"expected an element of {block}, found {self.tokens.found()}")
        if token.text not in elements:
            self.tokens.fail(_unknown(token.text, block, elements))
        self.tokens.next()
        element = elements[token.text]
        draft = _Draft(element.means or token.text, self.tokens.position(token))
        for part in element.header:
            self.header(part, draft)
        self.body(element, draft)
        return draft.node()

    def body(self, element: Element, draft: _Draft) -> None:
        if element.value is not None and self.tokens.at(":"):
            self.value(element, draft, self.tokens.next())
        elif element.block is not None and self.tokens.at("{"):
            with self.tokens.nested():
                self.block(element.block, draft)
        elif not element.bare:
            forms = ["':'"] * (element.value is not None) + ["'{'"] * (element.block is not None)
            self.tokens.fail(
                f"expected {' or '.join(forms)} after {draft.node().describe()}, found {self.tokens.found()}"
            )

    def block(self, block: str | Block, draft: _Draft) -> None:
        opening = self.tokens.expect("{")
        if block is Block.TEXT:
            draft.value_position = self.tokens.position()
            draft.values = (balanced_text(self.tokens, opening),)
            return
        while not self.tokens.accept("}"):
            if self.tokens.at_kind(END):
                message = f"the '{{' of {draft.node().describe()} is not closed"
                raise _Hopeless(message, self.tokens.position(opening))
            if block is Block.PROPERTIES:
                draft.children.append(self.property())
            elif block is Block.INPUTS:
                draft.children.append(self.input("query" if draft.keyword == "inputs" else "constant"))
            else:
                self.member(str(block), draft)

    def member(self, block: str, draft: _Draft) -> None:
        """Adds the element at the current token to `draft`; one with a mistake is noted and passed."""
        first = self.tokens.current
        try:
            draft.children.append(self.element(block))
        except _Hopeless:
            raise
        except LanguageError as error:
            self.mistakes.append(error)
            if len(self.mistakes) >= limits.PACKAGE_PROBLEMS:
                raise _Hopeless(f"more than {limits.PACKAGE_PROBLEMS} mistakes", error.position) from None
            self.tokens.skip_statement(first)

    def property(self) -> SchemaNode:
        """`key: value`, its pieces joined without space, as Vespa does."""
        first = self.tokens.current
        end = line_end(self.tokens, first)
        key = self.joined_until(":", end)
        self.tokens.expect(":")
        position = self.tokens.position()
        value = "".join(_unquote(token) for token in self.tokens.take_block(end))
        if not key or not value:
            self.tokens.fail("expected 'key: value' on one line", first)
        return SchemaNode("property", self.tokens.position(first), key, values=(value,), value_position=position)

    def joined_until(self, stop: str, end: int) -> str:
        pieces: list[str] = []
        while not self.tokens.at(stop, "}") and not self.tokens.at_kind(END) and self.tokens.current.start < end:
            pieces.append(_unquote(self.tokens.next()))
        return "".join(pieces)

    def input(self, wrapper: str) -> SchemaNode:
        """`name`, or `wrapper(name)`, then perhaps a type, then perhaps a value."""
        token = self.tokens.current
        draft = _Draft("input", self.tokens.position(token))
        if self.tokens.at(wrapper) and self.tokens.peek().text == "(":
            self.tokens.next()
            self.tokens.next()
            draft.name = self.name_token(_NAME, "a name")
            self.tokens.expect(")")
        else:
            draft.name = self.name_token(_NAME, f"a name or {wrapper}(name)")
        if self.tokens.at(*_INPUT_TYPES):
            draft.type = self.data_type()
        if self.tokens.accept(":"):
            draft.value_position = self.tokens.position()
            draft.values = (self.input_value(),)
        elif self.tokens.at("{"):
            self.old_constant(draft)
        return draft.node()

    def old_constant(self, draft: _Draft) -> None:
        """`{ type: … value: … }`, in any order; the value may stand in braces of its own instead of after a colon."""
        opening = self.tokens.expect("{")
        while not self.tokens.accept("}"):
            if self.tokens.accept("type"):
                self.tokens.expect(":")
                draft.type = self.data_type()
                continue
            if not self.tokens.accept("value"):
                self.tokens.fail(f"expected type, value or '}}', found {self.tokens.found()}")
            braced = not self.tokens.accept(":") and self.tokens.expect("{")
            draft.value_position = self.tokens.position()
            draft.values = (self.input_value(),)
            if braced:
                self.tokens.expect("}")
        if not draft.values:
            self.tokens.fail(f"{draft.keyword} {draft.name} has no value", opening)

    def input_value(self) -> str:
        if self.tokens.at(*OPENING):
            return read_bracketed(self.tokens)
        if self.tokens.accept("file"):
            self.tokens.expect(":")
            return f"file:{self.path()}"
        if not self.tokens.at_kind("number", "word"):
            self.tokens.fail(f"expected a number, a tensor or 'file:', found {self.tokens.found()}")
        return self.tokens.next().text

    # Values

    def value(self, element: Element, draft: _Draft, colon: Token) -> None:
        kind = element.value
        if kind in (Value.CHILD, Value.CHILDREN):
            draft.children.append(self.element(str(element.block)))
            while kind is Value.CHILDREN and self.tokens.accept(","):
                draft.children.append(self.element(str(element.block)))
            return
        draft.value_position = self.tokens.position()
        draft.values = self.plain_value(element, colon)

    def plain_value(self, element: Element, colon: Token) -> tuple[str, ...]:
        match element.value:
            case Value.WORD:
                return (self.word(element.choices),)
            case Value.WORDS:
                return self.names(_PATH)
            case Value.TEXT:
                return (_unquote(self.tokens.expect_kind("word", "string")),)
            case Value.PATH:
                return (self.path(),)
            case Value.INTEGER:
                return (self.number(_INTEGER, "a whole number"),)
            case Value.NUMBER:
                return (self.number(None, "a number"),)
            case Value.NUMBER_OR_WORD:
                return (self.tokens.expect_kind("number", "word").text,)
            case Value.BOOLEAN:
                return (self.word(("on", "off", "true", "false")),)
            case Value.TYPE:
                return (self.data_type(),)
            case Value.OPTIONAL_LINE:
                return (line_text(self.tokens, colon, may_be_empty=True),)
            case _:
                return (line_text(self.tokens, colon, script=element.value is Value.SCRIPT),)

    def word(self, choices: tuple[str, ...]) -> str:
        token = self.tokens.current
        if token.kind != "word" or (choices and token.text not in choices):
            expected = " or ".join(choices) if choices else "a word"
            self.tokens.fail(f"expected {expected}, found {self.tokens.found()}")
        return self.tokens.next().text

    def number(self, pattern: re.Pattern[str] | None, what: str) -> str:
        token = self.tokens.current
        if token.kind != "number" or (pattern is not None and not pattern.fullmatch(token.text)):
            self.tokens.fail(f"expected {what}, found {self.tokens.found()}")
        return self.tokens.next().text

    def path(self) -> str:
        """The tokens that stand against each other, braces excepted."""
        start = end = self.tokens.current.start
        while self.tokens.current.start == end and not self.tokens.at("{", "}") and not self.tokens.at_kind(END):
            end = self.tokens.next().end
        if start == end:
            self.tokens.fail(f"expected a path, found {self.tokens.found()}")
        return self.tokens.text[start:end]

    # Headers

    def header(self, part: HeaderPart, draft: _Draft) -> None:
        match part:
            case HeaderPart.NAME:
                draft.name = self.name_token(_NAME, "a name")
            case HeaderPart.OPTIONAL_NAME:
                draft.name = self.optional_name(_NAME)
            case HeaderPart.OPTIONAL_PATH:
                draft.name = self.optional_name(_PATH)
            case HeaderPart.DASHED_NAME:
                draft.name = self.name_token(_DASHED_NAME, "a name")
            case HeaderPart.PATH:
                draft.name = self.name_token(_PATH, "a name")
            case HeaderPart.QUOTED_NAME:
                draft.name = _unquote(self.tokens.expect_kind("word", "string"))
            case HeaderPart.FUNCTION:
                self.function_header(draft)
            case HeaderPart.INHERITS:
                draft.inherits = self.names(_PROFILE_NAME) if self.tokens.accept("inherits") else ()
            case HeaderPart.TYPE:
                self.tokens.expect("type")
                draft.type = self.data_type()
            case HeaderPart.OPTIONAL_TYPE:
                draft.type = self.data_type() if self.tokens.accept("type") else ""
            case HeaderPart.FIELD:
                self.tokens.expect("field")
            case HeaderPart.AS:
                self.tokens.expect("as")
                draft.arguments = (self.name_token(_NAME, "a name"),)

    def name_token(self, pattern: re.Pattern[str], what: str) -> str:
        token = self.tokens.current
        if token.kind != "word":
            self.tokens.fail(f"expected {what}, found {self.tokens.found()}")
        if not pattern.fullmatch(token.text):
            self.tokens.fail(f"{token.text!r} is not allowed as a name here")
        return self.tokens.next().text

    def names(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
        names = [self.name_token(pattern, "a name")]
        while self.tokens.accept(","):
            names.append(self.name_token(pattern, "a name"))
        return tuple(names)

    def optional_name(self, pattern: re.Pattern[str]) -> str:
        if self.tokens.at(":", "{", "inherits", "type"):
            return ""
        return self.name_token(pattern, "a name, ':' or '{'")

    def function_header(self, draft: _Draft) -> None:
        if self.tokens.at("inline") and self.tokens.peek().text != "(":
            draft.inline = self.tokens.next().text == "inline"
        draft.name = self.name_token(_FUNCTION_NAME, "a function name")
        self.tokens.expect("(")
        if not self.tokens.at(")"):
            draft.arguments = self.names(_NAME)
        self.tokens.expect(")")

    def data_type(self) -> str:
        """A data type as canonical text: no white space, `array<T>` for `T[]`."""
        with self.tokens.nested():
            name = self.name_token(_PATH, "a data type")
            if name == "tensor":
                return self.tensor_type()
            if self.tokens.accept("<"):
                arguments = [self.data_type()]
                while self.tokens.accept(","):
                    arguments.append(self.data_type())
                self.tokens.expect(">")
                return f"{name}<{','.join(arguments)}>"
            if self.tokens.at("[") and self.tokens.peek().text == "]":
                self.tokens.next()
                self.tokens.next()
                return f"array<{name}>"
            return name

    def tensor_type(self) -> str:
        cell = ""
        if self.tokens.accept("<"):
            cell = f"<{self.word(())}>"
            self.tokens.expect(">")
        self.tokens.expect("(")
        dimensions: list[str] = []
        while not self.tokens.at(")"):
            if dimensions:
                self.tokens.expect(",")
            dimensions.append(self.dimension())
        self.tokens.expect(")")
        return f"tensor{cell}({','.join(dimensions)})"

    def dimension(self) -> str:
        name = self.name_token(_NAME, "a dimension name")
        if self.tokens.expect("{", "[").text == "{":
            self.tokens.expect("}")
            return name + "{}"
        size = self.tokens.accept_kind("number")
        self.tokens.expect("]")
        return f"{name}[{size.text if size else ''}]"


def _unquote(token: Token) -> str:
    return token.text[1:-1] if token.kind == "string" else token.text


def _unknown(word: str, block: str, elements: Mapping[str, Element]) -> str:
    """The message for a word that is no element of `block`: the nearest one that is, or where the word belongs."""
    message = f"unknown element {word!r} in {block}"
    if hint := did_you_mean(word, elements):
        return message + hint
    if homes := blocks_with(word):
        return f"{word!r} does not belong in {block}, but in {' or '.join(homes)}"
    return f"{message}; it may hold {', '.join(elements) or 'nothing'}"


# Cutting the text of other languages out of a schema: expressions, indexing scripts, tensors.
#
# It is done by looking at tokens only, so a brace or a `#` inside a quoted string never ends a text. What the text
# means is for the packages of those languages; comments in it are replaced by spaces, so that positions in it stay
# true.


OPENING: Final[Mapping[str, str]] = {"{": "}", "(": ")", "[": "]"}
"""Opening bracket → the one that closes it."""

_COMMENT_OR_STRING: Final = compile_later(r"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*")


def line_end(tokens: TokenStream, token: Token) -> int:
    """The offset of the end of the line that `token` is on."""
    end = tokens.text.find("\n", token.start)
    return len(tokens.text) if end < 0 else end


def line_text(tokens: TokenStream, colon: Token, *, script: bool = False, may_be_empty: bool = False) -> str:
    """The free text after `colon`: its line, and for scripts the lines that go on from there."""
    taken = tokens.take_block(line_end(tokens, colon))
    if not taken:
        if may_be_empty:
            return ""
        tokens.fail("expected text after ':' on the same line", colon)
    opened = _still_open([], taken)
    while script and _continues(tokens, taken[-1], opened):
        more = tokens.take_block(line_end(tokens, tokens.current)) or [tokens.next()]
        opened = _still_open(opened, more)
        taken += more
    for opening in opened:
        if opening.text == "{":
            tokens.fail("this '{' is not closed on its line; a block has room for more lines", opening)
    return _text_of(tokens, taken)


def balanced_text(tokens: TokenStream, opening: Token) -> str:
    """The text up to the brace that closes `opening`, which is passed."""
    taken = tokens.take_block(len(tokens.text))
    if not tokens.accept("}"):
        tokens.fail("a '{' is not closed", opening)
    return _text_of(tokens, taken)


def read_bracketed(tokens: TokenStream) -> str:
    """Reads the text from the current bracket to its partner, both in it, all kinds of brackets in balance."""
    taken = [tokens.next()]
    closers = [OPENING[taken[0].text]]
    while closers:
        if tokens.at_kind(END):
            tokens.fail(f"a {taken[0].text!r} is not closed", taken[0])
        token = tokens.next()
        taken.append(token)
        if token.text in OPENING:
            closers.append(OPENING[token.text])
        elif token.text in OPENING.values() and token.text != closers.pop():
            tokens.fail(f"{token.text!r} does not close the bracket before it", token)
    return _text_of(tokens, taken)


def _continues(tokens: TokenStream, last: Token, opened: list[Token]) -> bool:
    """Return whether a script goes on after its token `last`: a bracket is open, or an operator is at the seam."""
    if tokens.at_kind(END) or (not opened and tokens.at("}")):
        return False
    return bool(opened) or tokens.at("|") or last.text in ("|", ".")


def _still_open(opened: list[Token], tokens: Iterable[Token]) -> list[Token]:
    """The opening brackets without a partner after `tokens`; closing ones without a partner do not count."""
    for token in tokens:
        if token.text in OPENING:
            opened.append(token)
        elif opened and token.text == OPENING[opened[-1].text]:
            opened.pop()
    return opened


def _text_of(tokens: TokenStream, taken: list[Token]) -> str:
    if not taken:
        return ""
    raw = tokens.text[taken[0].start : taken[-1].end]
    return _COMMENT_OR_STRING.sub(_blank_comment, raw)


def _blank_comment(match: re.Match[str]) -> str:
    return " " * len(match.group()) if match.group().startswith("#") else match.group()
