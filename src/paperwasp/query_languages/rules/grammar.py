"""The language of rule files: directives, production rules, named conditions.

    statement   = [name] :- condition ;  |  condition -> productions ;  |  condition +> productions ;
    condition   = [.] choice [.]         choice = sequence, sequence …   sequence = terminal terminal …
    terminal    = [!] [name/] [parameter.] [label:] body [comparison body]  [& terminal]
    body        = word | [name] | ... | [...] | (choice) | 'literal' | "sequence" | @super
    production  = [sign] [label:] (word | "words" | [name] | [name*] | <number) [!weight]  |  parameter.key=value

Vespa: https://docs.vespa.ai/en/reference/querying/semantic-rules.html
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.errors import LanguageError, Position
from paperwasp.query_languages.rules.conditions import (
    COMPARISONS,
    Anchored,
    And,
    Choice,
    Comparison,
    Condition,
    Ellipsis,
    InPhrase,
    Labeled,
    Literal,
    Named,
    Not,
    Parameter,
    Reference,
    Sequence,
    Speech,
    Super,
    Term,
)
from paperwasp.query_languages.rules.rule_base import (
    TERM_TYPES,
    ProducedParameter,
    ProducedRange,
    ProducedReference,
    ProducedWords,
    Production,
    Rule,
)
from paperwasp.text.linguistics import UNKNOWN, language_of
from paperwasp.text.parsing import Lexicon, Token, TokenStream

_WORD: Final = (
    r"(?:[0-9A-Za-z_@^`]|[^\x00-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7\u2000-\u2064\u3000-\u3004"
    r"\uff01-\uff0f\uff1a-\uff20\ufeff])+"
)
_LEXICON: Final = Lexicon(
    {
        "_space": r"\s+|\ufeff",
        "_comment": r"#[^\n\r]*",
        "directive": r"@(?:automata|default|include|language|stemming|super)(?![0-9A-Za-z_])",
        "word": _WORD,
        "literal": r"'(?:\\'|[^'])*'",
        "sign": r"\.\.\.|:-|->|\+>|=~|!=|>=|<=|[-:,$.=!>()\[\]+?\";/<*~&]",
    }
)
_MAX_WEIGHT: Final = 2**31 - 1
_ELLIPSIS: Final = "..."
_FALSE: Final = "false"


class Include(Struct):
    """Another rule base, whose rules are evaluated in this place."""

    name: str
    position: Position


class RuleFile(Struct):
    """The rules of one file, before they are joined with those that it includes."""

    source: str
    is_default: bool = False
    automata: tuple[str, Position] | None = None
    statements: list[Rule | Include] = field(default_factory=list)
    conditions: dict[str, Condition] = field(default_factory=dict)
    positions: dict[str, Position] = field(default_factory=dict)
    """The positions of named conditions."""
    errors: list[LanguageError] = field(default_factory=list)


def parse_rules(text: str, source: str) -> RuleFile:
    """Read a file with all of its errors. After one, reading goes on with the next statement."""
    file = RuleFile(source)
    try:
        tokens = _LEXICON.tokenize(text, source)
    except LanguageError as error:
        file.errors.append(error)
        return file
    parser = _Parser(tokens, file)
    while not tokens.at_kind("end"):
        first = tokens.current
        try:
            parser.statement()
        except LanguageError as error:
            file.errors.append(error)
            _skip(tokens, first)
    return file


def _skip(tokens: TokenStream, first: Token) -> None:
    """Move behind the statement that began with a token: a directive ends with its line."""
    if first.kind == "directive":
        line = tokens.position(first).line
        while not tokens.at_kind("end") and tokens.position().line == line:
            tokens.next()
        return
    while not tokens.at_kind("end") and tokens.next().text != ";":
        pass


class _Parser:
    def __init__(self, tokens: TokenStream, file: RuleFile) -> None:
        self._tokens = tokens
        self._file = file
        self._speech = Speech()
        self._depth = 0

    def statement(self) -> None:
        tokens = self._tokens
        self._depth = 0
        if tokens.at_kind("directive") and not tokens.at("@super"):
            self._directive(tokens.next())
        elif tokens.at("[") and tokens.peek(3).text == ":-":
            self._named_condition()
        else:
            self._rule()

    def _directive(self, token: Token) -> None:
        position = self._tokens.position(token)
        value = "" if token.text == "@default" else self._argument()
        self._tokens.accept(";")
        match token.text:
            case "@default":
                self._file.is_default = True
            case "@include":
                self._file.statements.append(Include(value, position))
            case "@automata":
                self._file.automata = value, position
            case "@stemming":
                if value.lower() not in ("true", _FALSE):
                    raise LanguageError(f"@stemming is true or false, not '{value}'", position)
                self._set_speech(replace(self._speech, stemming=value.lower() != _FALSE), token)
            case "@language":
                language = language_of(value)
                if language == UNKNOWN:
                    raise LanguageError(f"'{value}' is no language that is known", position)
                self._set_speech(replace(self._speech, language=language), token)

    def _set_speech(self, speech: Speech, token: Token) -> None:
        if any(isinstance(statement, Rule) for statement in self._file.statements) or self._file.conditions:
            self._tokens.fail(f"{token.text} stands before all rules and conditions", token)
        self._speech = speech

    def _argument(self) -> str:
        self._tokens.expect("(")
        value = self._text()
        self._tokens.expect(")")
        return value

    def _text(self) -> str:
        """Read a literal, or a name with slashes, dots and dashes in it."""
        if literal := self._tokens.accept_kind("literal"):
            return _unquote(literal)
        parts = []
        while self._tokens.at_kind("word") or self._tokens.at("/", ".", "-"):
            parts.append(self._tokens.next().text)
        return "".join(parts) if parts else self._tokens.expect_kind("word").text

    def _named_condition(self) -> None:
        opened = self._tokens.expect("[")
        name = self._tokens.expect_kind("word").text
        self._tokens.expect("]")
        self._tokens.expect(":-")
        condition = self._top_condition()
        self._tokens.expect(";")
        self._file.conditions.pop(name, None)
        self._file.conditions[name] = condition
        self._file.positions[name] = self._tokens.position(opened)

    def _rule(self) -> None:
        position = self._tokens.position()
        condition = self._top_condition()
        is_replacing = self._tokens.expect("->", "+>").text == "->"
        productions = []
        while not self._tokens.accept(";"):
            productions.append(self._production())
        self._file.statements.append(Rule(condition, is_replacing, tuple(productions), position))

    # Conditions

    def _top_condition(self) -> Condition:
        at_start = self._tokens.accept(".") is not None
        condition = self._choice()
        at_end = self._tokens.accept(".") is not None
        return Anchored((condition,), at_start, at_end) if at_start or at_end else condition

    def _choice(self) -> Condition:
        self._depth += 1
        if self._depth > limits.RULE_DEPTH:
            self._tokens.fail(f"nested deeper than {limits.RULE_DEPTH} levels")
        alternatives = [self._sequence()]
        while self._tokens.accept(","):
            alternatives.append(self._sequence())
        self._depth -= 1
        return alternatives[0] if len(alternatives) == 1 else Choice(tuple(alternatives))

    def _sequence(self) -> Condition:
        parts = [self._terminal()]
        tokens = self._tokens
        while tokens.at_kind("word", "literal") or tokens.at("[", "(", "!", _ELLIPSIS, '"', "@super"):
            parts.append(self._terminal())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _terminal(self) -> Condition:
        parts = [self._not()]
        while self._tokens.accept("&"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _not(self) -> Condition:
        if self._tokens.accept("!"):
            return Not((self._comparison(),))
        return self._comparison()

    def _comparison(self) -> Condition:
        left = self._read_labeled()
        if self._tokens.current.text not in COMPARISONS:
            return left
        return Comparison(left, self._tokens.next().text, self._read_labeled())

    def _read_labeled(self) -> Condition:
        name = self._before("/")
        if self._is_before(".") and self._tokens.peek(2).kind == "word":
            condition = self._parameter()
        else:
            label = self._before(":")
            condition = self._body()
            if label is not None:
                inner = condition.parts[0] if isinstance(condition, Named) else condition
                labeled = Labeled((inner,), label)
                condition = Named((labeled,), condition.name) if isinstance(condition, Named) else labeled
        if name is not None:
            condition = Named((condition.parts[0] if isinstance(condition, Named) else condition,), name)
        return condition

    def _is_before(self, sign: str) -> bool:
        return self._tokens.at_kind("word") and self._tokens.peek().text == sign

    def _before(self, sign: str) -> str | None:
        """Read the next word and the sign behind it; None where they are not next."""
        if not self._is_before(sign):
            return None
        word = self._tokens.next().text
        self._tokens.next()
        return word

    def _parameter(self) -> Condition:
        self._namespace()
        key = self._tokens.expect_kind("word").text
        while self._tokens.at(".") and self._tokens.peek().kind == "word":
            self._tokens.next()
            key += f".{self._tokens.next().text}"
        return Parameter(key)

    def _namespace(self) -> None:
        token = self._tokens.expect_kind("word")
        if token.text != "parameter":
            self._tokens.fail(f"Unknown namespace '{token.text}': there is only 'parameter'", token)
        self._tokens.expect(".")

    def _body(self) -> Condition:
        tokens = self._tokens
        if word := tokens.accept_kind("word"):
            return Term(word.text, self._speech)
        if literal := tokens.accept_kind("literal"):
            return Literal(_unquote(literal))
        if tokens.accept(_ELLIPSIS):
            return Ellipsis(is_referable=False)
        if tokens.accept("@super"):
            return Super()
        if tokens.accept("("):
            condition = self._choice()
            tokens.expect(")")
            return condition
        if tokens.accept('"'):
            return self._phrase()
        if tokens.accept("["):
            return self._bracket()
        tokens.fail(f"expected a condition, found {tokens.found()}")

    def _phrase(self) -> Condition:
        parts = [self._body()]
        while not self._tokens.accept('"'):
            parts.append(self._body())
        return InPhrase((parts[0] if len(parts) == 1 else Sequence(tuple(parts)),))

    def _bracket(self) -> Condition:
        """Read `…]`: a referable ellipsis, or a named condition."""
        if self._tokens.accept(_ELLIPSIS):
            self._tokens.expect("]")
            return Named((Ellipsis(is_referable=True),), _ELLIPSIS)
        name = self._tokens.expect_kind("word").text
        self._tokens.expect("]")
        return Named((Reference(name),), name)

    # Productions

    def _production(self) -> Production:
        if self._is_before("."):
            return self._produced_parameter()
        sign = self._tokens.accept(*TERM_TYPES)
        label = self._before(":")
        production = replace(self._read_production(), label=label, type=sign.text if sign else "")
        return replace(production, weight=self._weight()) if self._tokens.accept("!") else production

    def _produced_parameter(self) -> Production:
        self._namespace()
        key = self._text()
        self._tokens.expect("=")
        literal = self._tokens.accept_kind("literal")
        return ProducedParameter(key=key, value=_unquote(literal) if literal else self._value())

    def _value(self) -> str:
        value = self._tokens.expect_kind("word").text
        if value.isdigit() and self._tokens.at(".") and self._tokens.peek().text.isdigit():
            self._tokens.next()
            value += f".{self._tokens.next().text}"
        return value

    def _read_production(self) -> Production:
        tokens = self._tokens
        if operator := tokens.accept("<", ">", "<=", ">="):
            if tokens.accept("["):
                return ProducedRange(operator=operator.text, name=self._reference()[0])
            return ProducedRange(operator=operator.text, number=self._number())
        if word := tokens.accept_kind("word"):
            if tokens.at("=") and tokens.peek().kind == "literal":
                tokens.fail(f"only a parameter has a value: parameter.{word.text}={tokens.peek().text}")
            return ProducedWords(words=(word.text,))
        if tokens.accept("["):
            name, is_all = self._reference()
            return ProducedReference(name=name, is_all=is_all)
        if tokens.accept('"'):
            words = [tokens.expect_kind("word").text]
            while not tokens.accept('"'):
                words.append(tokens.expect_kind("word").text)
            return ProducedWords(words=tuple(words), is_phrase=True)
        tokens.fail(f"expected a production or ';', found {tokens.found()}")

    def _reference(self) -> tuple[str, bool]:
        """Read `name]`, `name*]` or `...]`, and whether all of the condition is meant."""
        name = self._tokens.accept(_ELLIPSIS) or self._tokens.expect_kind("word")
        is_all = self._tokens.accept("*") is not None
        self._tokens.expect("]")
        return name.text, is_all

    def _number(self) -> str:
        sign = "-" if self._tokens.accept("-") else ""
        value = self._value()
        if not value.replace(".", "", 1).isdecimal():
            self._tokens.fail(f"expected a number, found '{value}'")
        return sign + value

    def _weight(self) -> int:
        token = self._tokens.expect_kind("word")
        if not (token.text.isdecimal() and len(token.text) <= 10 and int(token.text) <= _MAX_WEIGHT):
            self._tokens.fail(f"a weight is a whole number of at most {_MAX_WEIGHT}, not '{token.text}'", token)
        return int(token.text)


def _unquote(literal: Token) -> str:
    return literal.text[1:-1].replace("\\'", "'")
