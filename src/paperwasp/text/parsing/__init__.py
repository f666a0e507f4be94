"""The tokenizer and expression toolkit of seven languages: schemas, indexing scripts, rank expressions, document
selections, predicates, semantic rules and YQL."""

from paperwasp.text.parsing.tokens import Lexicon, Token, TokenStream

__all__ = ["Lexicon", "Token", "TokenStream"]
