"""The languages that queries come in: YQL, the simple and the advanced language, JSON; and rules that rewrite them."""
