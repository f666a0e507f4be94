"""The names of the properties of a query in Vespa, by the class that reads them: facts for the page of parameters.

A name with an alias is followed by it. Of groups whose members the user names, one member stands for all.
Source: the reference https://docs.vespa.ai/en/reference/api/query.html and the classes of container-search. With a new
release of Vespa, whatever one of its classes has beside these belongs into the list, and then onto our page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PROPERTIES: Final[Mapping[str, str]] = {
    "com.yahoo.search.Query": """
        offset start hits count queryProfile searchChain noCache groupingSessionCache timeout tracelevel explainlevel
        sourceName providerName
    """,
    "com.yahoo.search.query.properties.DefaultProperties": "maxHits maxOffset maxQueryItems",
    "com.yahoo.search.query.Model": """
        model.queryString query model.type type model.filter filter model.defaultIndex default-index model.language
        language lang model.locale locale model.encoding encoding model.sources sources search model.searchPath
        searchpath model.restrict restrict
    """,
    "com.yahoo.search.query.QueryType": """
        model.type.composite model.type.tokenization model.type.syntax model.type.profile model.type.isYqlDefault
    """,
    "com.yahoo.search.query.Select": "select select.where select.grouping",
    "com.yahoo.search.query.Presentation": """
        presentation.bolding bolding presentation.timing timing presentation.summary summary presentation.summaryFields
        summaryFields presentation.format format template presentation.format.tensors format.tensors
        presentation.template
    """,
    "com.yahoo.search.query.Trace": """
        trace.level trace.explainLevel trace.profileDepth trace.timestamps trace.query
        trace.profiling.matching.depth trace.profiling.firstPhaseRanking.depth trace.profiling.secondPhaseRanking.depth
    """,
    "com.yahoo.search.query.Ranking": """
        ranking.profile ranking ranking.location location ranking.sorting sorting sortspec ranking.listFeatures
        rankfeatures ranking.freshness datetime ranking.queryCache ranking.rerankCount ranking.keepRankCount
        ranking.totalKeepRankCount ranking.rankScoreDropLimit ranking.features.query(name) rankfeature.query(name)
        input.query(name) ranking.properties.name rankproperty.name ranking.elementGap.field
    """,
    "com.yahoo.search.query.ranking.GlobalPhase": """
        ranking.globalPhase.rerankCount ranking.globalPhase.rankScoreDropLimit
    """,
    "com.yahoo.search.query.ranking.SecondPhase": """
        ranking.secondPhase.rerankCount ranking.secondPhase.totalRerankCount ranking.secondPhase.rankScoreDropLimit
    """,
    "com.yahoo.search.query.ranking.Significance": "ranking.significance.useModel",
    "com.yahoo.search.query.ranking.MatchPhase": """
        ranking.matchPhase matchPhase ranking.matchPhase.attribute ranking.matchPhase.ascending
        ranking.matchPhase.maxHits ranking.matchPhase.totalMaxHits ranking.matchPhase.maxFilterCoverage
    """,
    "com.yahoo.search.query.ranking.Diversity": """
        ranking.matchPhase.diversity.attribute ranking.matchPhase.diversity.minGroups
        ranking.matchPhase.diversity.cutoff.factor ranking.matchPhase.diversity.cutoff.strategy
    """,
    "com.yahoo.search.query.ranking.SoftTimeout": """
        ranking.softtimeout.enable ranking.softtimeout.factor ranking.softtimeout.tailcost
    """,
    "com.yahoo.search.query.ranking.Matching": """
        ranking.matching.termwiseLimit ranking.matching.numThreadsPerSearch ranking.matching.numSearchPartitions
        ranking.matching.minHitsPerThread ranking.matching.postFilterThreshold ranking.matching.approximateThreshold
        ranking.matching.filterFirstThreshold ranking.matching.filterFirstExploration
        ranking.matching.explorationSlack ranking.matching.targetHitsMaxAdjustmentFactor
        ranking.matching.filterThreshold ranking.matching.anntimebudget ranking.matching.anntimeout.enable
        ranking.matching.anntimeout.factor
    """,
    "com.yahoo.search.query.ranking.WeakAnd": """
        ranking.matching.weakand.stopwordLimit ranking.matching.weakand.adjustTarget
        ranking.matching.weakand.allowDropAll
    """,
    "com.yahoo.search.dispatch.Dispatcher": "dispatch.topKProbability",
    "com.yahoo.search.yql.MinimalQueryInserter": "yql",
    "com.yahoo.search.grouping.GroupingQueryParser": """
        timezone grouping.defaultMaxGroups grouping.defaultMaxHits grouping.globalMaxGroups
        grouping.defaultPrecisionFactor
    """,
    "com.yahoo.search.grouping.vespa.GroupingExecutor and GroupingValidator": "validate_select",
    "com.yahoo.prelude.searcher.FieldCollapsingSearcher": """
        collapsefield collapse.field collapsesize collapse.size collapsesize.field collapse.summary
    """,
    "com.yahoo.prelude.searcher.PosSearcher": "pos.ll pos.xy pos.bb pos.radius pos.attribute",
    "com.yahoo.vespa.streamingvisitors": """
        streaming.groupname streaming.userid streaming.selection streaming.fromtimestamp streaming.totimestamp
        streaming.priority streaming.maxbucketspervisitor
    """,
    "com.yahoo.prelude.semantics.SemanticSearcher": "rules.off rules.rulebase tracelevel.rules",
    "com.yahoo.prelude.querytransform": "recall nostemming suggestonly weakAnd.replace wand.hits gram.match",
    "com.yahoo.search.querytransform": """
        wand.field wand.tokens wand.type wand.heapSize wand.scoreThreshold wand.thresholdBoostFactor boolean.field
        boolean.attributes boolean.rangeAttributes weakAnd.opportunistic.and weakAnd.opportunistic.factor
        sorting.degrading
    """,
    "com.yahoo.search.rendering.JsonRenderer": """
        renderer.json.jsonMaps renderer.json.jsonWsets renderer.json.debug jsoncallback
    """,
    "com.yahoo.prelude.searcher and com.yahoo.search.federation": "source.name.parameter provider.name.parameter",
    "com.yahoo.search.handler": "hitcountestimate user metrics.ignore",
    "com.yahoo.search.pagetemplates.PageTemplateSearcher": "page.id page.resolver",
    "com.yahoo.search.searchers.RateLimitingSearcher": "rate.id rate.cost rate.quota rate.idDimension rate.dryRun",
    "com.yahoo.search.searchers.CacheControlSearcher": "cachecontrol.maxage cachecontrol.staleage cachecontrol.nocache",
    "com.yahoo.search.searchers.ConnectionControlSearcher": "connectioncontrol.maxlifetime",
    "com.yahoo.search.searchers.RelatedDocumentsByNearestNeighborSearcher": """
        relatedTo.id relatedTo.idField relatedTo.embeddingField relatedTo.queryTensorName relatedTo.summary
        relatedTo.exploreAdditionalHits relatedTo.excludeSource relatedTo.restrict
    """,
    "ai.vespa.search.llm": "llm.prompt llm.stream llm.context llm.fields",
}
"""Class or package → the names."""

OWN: Final = frozenset(
    (
        "searchAfter",
        "ranking.firstPhase.expression",
        "ranking.secondPhase.expression",
        "ranking.globalPhase.expression",
        "ranking.matchFeatures.expression",
    )
)
"""What only this service has."""


def names_of_vespa() -> list[str]:
    return [name for names in PROPERTIES.values() for name in names.split()]
