"""Semantic rules: the rule bases of an application, which rewrite queries."""

from paperwasp.query_languages.rules.evaluation import Rewriting, rewrite
from paperwasp.query_languages.rules.loading import load_rules
from paperwasp.query_languages.rules.rule_base import NO_RULES, RuleBase, RuleBases

__all__ = ["NO_RULES", "Rewriting", "RuleBase", "RuleBases", "load_rules", "rewrite"]
