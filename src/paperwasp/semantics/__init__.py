"""Semantic rules: the rule bases of an application, and what they make of a query."""

from paperwasp.semantics.evaluation import Rewriting, rewrite
from paperwasp.semantics.loading import load_rules
from paperwasp.semantics.rules import NO_RULES, RuleBase, RuleBases

__all__ = ["NO_RULES", "Rewriting", "RuleBase", "RuleBases", "load_rules", "rewrite"]
