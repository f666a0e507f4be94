"""What a change of document types and content clusters needs, and how changes are put together, allowed and told."""

from __future__ import annotations

from datetime import date

import pytest

from paperwasp.application.changes.find import find_changes
from paperwasp.application.changes.found import Changes, Refusal, describe_actions, describe_refusals
from paperwasp.application.changes.overrides import Allow, ValidationOverrides
from paperwasp.application.services_model import ClusterNode, ContentDocument
from paperwasp.document.types import INT
from paperwasp.schema.model import AttributeSettings
from tests.application.changes.change_models import ATTRIBUTE, INDEX, application, cluster, field, lines, with_fields

TODAY = date(2026, 1, 15)


def of_documents(before: ContentDocument, after: ContentDocument) -> list[str]:
    return lines(find_changes(application(cluster(before)), application(cluster(after))))


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("index", "streaming", "'indexed' to 'streaming'"),
        ("index", "store-only", "'indexed' to 'store-only'"),
        ("streaming", "index", "'streaming' to 'indexed'"),
        ("store-only", "index", "'store-only' to 'indexed'"),
        ("store-only", "streaming", None),
        ("streaming", "store-only", None),
    ],
)
def test_modes(before: str, after: str, names: str | None) -> None:
    told = "Document type 'music' in cluster 'content' changed indexing mode from"
    expected = [f"reindex indexing-mode-change: {told} {names}"] if names else []
    assert of_documents(ContentDocument("music", before), ContentDocument("music", after)) == expected  # type: ignore[arg-type]


def test_fields_are_not_compared_where_the_mode_changes() -> None:
    changes = find_changes(with_fields(field()), with_fields(field(index=INDEX), mode="streaming"))
    assert [action.name for action in changes.actions] == ["indexing-mode-change"]


def test_global_documents() -> None:
    assert of_documents(ContentDocument("music"), ContentDocument("music", is_global=True)) == [
        "refused global-document-change: Document type 'music' in cluster 'content' changed global from false to true"
    ]


def test_removals_lose_documents() -> None:
    music, artist = ContentDocument("music"), ContentDocument("artist")
    both = application(cluster(music, artist))
    changes = find_changes(both, application(cluster(music)))
    assert changes.refusals == (
        Refusal(
            "schema-removal",
            "Schema 'artist' is removed in content cluster 'content'. This will cause loss of all data in this schema",
        ),
    )
    assert changes.actions == ()
    renamed = find_changes(both, application(cluster(music, artist, id="other")))
    assert renamed.refusals == (
        Refusal(
            "content-cluster-removal",
            "Content cluster 'content' is removed. This will cause loss of all data in this cluster",
        ),
    )
    assert find_changes(application(cluster(music)), both) == Changes()
    assert find_changes(application(), both) == Changes()


def test_redundancy_and_nodes_need_nothing() -> None:
    music = ContentDocument("music")
    many = cluster(
        music, redundancy=3, searchable_copies=2, groups=2, nodes=(ClusterNode(), ClusterNode(distribution_key=1))
    )
    assert find_changes(application(cluster(music)), application(many)) == Changes()
    assert find_changes(application(many), application(cluster(music))) == Changes()


def test_actions_are_put_together_by_what_is_to_be_done() -> None:
    before = with_fields(field("b", attribute=ATTRIBUTE), field("a", attribute=ATTRIBUTE), field("c"))
    fast = AttributeSettings(fast_search=True)
    after = with_fields(field("b", attribute=fast), field("a", attribute=fast), field("c", INT))
    restart, refeed = find_changes(before, after).actions
    assert restart.kind == "restart"
    assert (restart.name, restart.cluster, restart.document_type) == ("", "content", "")
    assert (restart.cluster_type, restart.service_type) == ("search", "searchnode")
    assert [message.split("'")[3] for message in restart.messages] == ["a", "b"]
    (service,) = refeed.services
    assert (service.name, service.type, service.host) == ("searchnode", "searchnode", "localhost")
    assert service.config_id == "content/search/cluster.content/0"
    assert (refeed.name, refeed.document_type, refeed.validation_id) == (
        "field-type-change",
        "music",
        "field-type-change",
    )


def test_what_is_refused_is_what_nothing_allows() -> None:
    before = with_fields(field("a"), field("b"))
    changes = find_changes(before, with_fields(field("a", INT), field("b", index=INDEX)))
    assert {refusal.validation_id for refusal in changes.refusals} == {"field-type-change", "indexing-change"}
    overrides = ValidationOverrides((Allow("indexing-change", TODAY),))
    (left,) = changes.find_refused(overrides, TODAY)
    assert left.validation_id == "field-type-change"
    assert changes.find_refused(overrides, TODAY, ignore_validation_errors=True) == ()
    assert len(changes.find_refused(ValidationOverrides(), TODAY)) == 2


def test_changes_are_told_as_vespa_tells_them() -> None:
    before = with_fields(field("a"), field("b"), field("c"))
    after = with_fields(field("a", INT), field("b", attribute=ATTRIBUTE), field("c", index=INDEX))
    changes = find_changes(before, after)
    restart, refeed, reindex = describe_actions(changes)
    assert restart.splitlines() == [
        "Change(s) between active and new application that require restart:",
        "In cluster 'content' of type 'search':",
        "    Restart services of type 'searchnode' because:",
        "        1) Document type 'music': Field 'b' changed: add attribute aspect",
    ]
    assert refeed.splitlines()[1:] == [
        "field-type-change: Consider removing data and re-feed document type 'music' in cluster 'content' because:",
        "    1) Document type 'music': Field 'a' changed: data type: 'string' -> 'int'",
    ]
    assert "indexing-change: Consider re-indexing document type 'music' in cluster 'content'" in reindex
    told = describe_refusals([*changes.refusals, Refusal("field-type-change", "another")])
    assert told.count("To allow this add <allow until='yyyy-mm-dd'>field-type-change</allow>") == 1
    assert "\tanother\n" in told
    assert describe_actions(Changes()) == ()
