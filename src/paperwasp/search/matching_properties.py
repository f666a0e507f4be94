"""The rank properties by which a query says how words and vectors are matched: see `operators.operator`."""

from __future__ import annotations

from typing import Final

ELEMENT_GAP: Final = "vespa.matching.element_gap."
"""What a query says of how far apart the elements of a field are: a rank property, with the field's name behind it."""
FILTER_THRESHOLD: Final = "vespa.matching.filter_threshold"
STOPWORD_LIMIT: Final = "vespa.matching.weakand.stop_word_drop_limit"
ADJUST_TARGET: Final = "vespa.matching.weakand.stop_word_adjust_limit"
ALLOW_DROP_ALL: Final = "vespa.matching.weakand.allow_drop_all"
"""What a query says of words that are in many documents, as rank properties: see `operators.operator`."""
APPROXIMATE_THRESHOLD: Final = "vespa.matching.global_filter.lower_limit"
POST_FILTER_THRESHOLD: Final = "vespa.matching.global_filter.upper_limit"
FILTER_FIRST_THRESHOLD: Final = "vespa.matching.nns.filter_first_upper_limit"
FILTER_FIRST_EXPLORATION: Final = "vespa.matching.nns.filter_first_exploration"
EXPLORATION_SLACK: Final = "vespa.matching.nns.exploration_slack"
TARGET_FACTOR: Final = "vespa.matching.nns.target_hits_max_adjustment_factor"
TIME_BUDGET: Final = "vespa.matching.anntimebudget"
"""What a query says of nearest neighbours, in the same way; the last in milliseconds."""
THREADS_OF_SEARCH: Final = "vespa.matching.numthreadspersearch"
HITS_OF_THREAD: Final = "vespa.matching.minhitsperthread"
SEARCH_PARTITIONS: Final = "vespa.matching.numsearchpartitions"
"""What a query says of the threads that rank it: see `search.scored_blocks`."""
