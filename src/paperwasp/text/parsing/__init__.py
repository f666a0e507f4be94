"""The tokenizer and expression toolkit that all seven languages share."""

from paperwasp.text.parsing.tokens import Lexicon, Token, TokenStream

__all__ = ["Lexicon", "Token", "TokenStream"]
