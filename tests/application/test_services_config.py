"""Configurations in services.xml: Juniper's, https://docs.vespa.ai/en/querying/document-summaries.html, and that of the
OpenNLP linguistics, https://docs.vespa.ai/en/linguistics/linguistics-opennlp.html"""

from __future__ import annotations

import pytest

from paperwasp import limits
from paperwasp.application.build import build_model
from paperwasp.application.model import ApplicationModel
from paperwasp.application.package import ApplicationPackage
from paperwasp.errors import InvalidPackage
from paperwasp.schema.teaser_settings import HI_TAGS, Tags, Teasers, TeaserSettings
from paperwasp.schema.text_profiles import text_profile

JUNIPER = '<config name="vespa.config.search.summary.juniperrc">{}</config>'
SERVICES = """<services version="1.0">{root}
  <container id="default" version="1.0"><search/><document-api/>{container}</container>
  <content id="music" version="1.0"><redundancy>1</redundancy>{content}
    <documents><document type="music" mode="index">{document}</document>
      <document type="book" mode="streaming"/></documents>
  </content>
</services>"""

MUSIC = "schema music { document music { field title type string { indexing: index } } }"


def model_of(query_memory_bytes: str = "", **said: str) -> ApplicationModel:
    texts = {place: said.get(place, "") for place in ("root", "container", "content", "document")}
    files = {
        "services.xml": SERVICES.format(**texts),
        "schemas/music.sd": MUSIC,
        "schemas/book.sd": "schema book { document book { } }",
    }
    package = ApplicationPackage({path: text.encode() for path, text in files.items()})
    return build_model(package, lambda *_: (), query_memory_bytes=int(query_memory_bytes or limits.QUERY_MEMORY_BYTES))


def teasers_of(model: ApplicationModel) -> dict[str, Teasers]:
    return {name: schema.teasers for name, schema in model.content_clusters[0].schemas.items()}


def test_without_it_schemas_are_those_of_the_package() -> None:
    model = model_of()
    assert model.content_clusters[0].schemas["music"] is model.schemas["music"]
    assert teasers_of(model) == {"music": Teasers(), "book": Teasers()}


def test_what_is_further_in_counts_more() -> None:
    override = "<override><item><fieldname>short</fieldname><length>9</length></item></override>"
    model = model_of(
        root=JUNIPER.format("<length>1000</length><max_matches>2</max_matches>" + override),
        content=JUNIPER.format("<max_matches>4</max_matches><prefix>false</prefix>"),
        document=JUNIPER.format(
            "<winsize_fallback_multiplier>2.5</winsize_fallback_multiplier>" + override.replace("short", "long")
        ),
    )
    said = TeaserSettings(length=1000, max_matches=4, prefix=False)
    # what an item does not say has its default, whatever is said beside it
    assert teasers_of(model) == {
        "music": Teasers(
            TeaserSettings(length=1000, max_matches=4, prefix=False, winsize_fallback_multiplier=2.5),
            {"short": TeaserSettings(length=9), "long": TeaserSettings(length=9)},
        ),
        "book": Teasers(said, {"short": TeaserSettings(length=9)}),
    }
    assert not model.findings


def test_elsewhere_and_by_other_names_it_has_no_effect() -> None:
    model = model_of(
        container=JUNIPER.format("<length>7</length>"),
        content='<config name="vespa.config.search.core.proton"><x>1</x></config>',
        document='<config name="a.b"/>',
        root='<config name="a.b"/>',
    )
    assert teasers_of(model) == {"music": Teasers(), "book": Teasers()}
    why = "has no effect: the configuration that it overrides does not exist here"
    assert sorted(finding.message for finding in model.findings) == [
        f"element 'config' in '{tag}' {why}" for tag in ("container", "content", "document", "services")
    ]


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        ("<lenght>3</lenght>", "juniperrc has no 'lenght'; did you mean 'length'?"),
        ("<length>many</length>", "value of 'length' is invalid; must be an integer from 0 to 2147483647, not 'many'"),
        ("<length>-1</length>", "value of 'length' is invalid"),
        ("<prefix>maybe</prefix>", "value of 'prefix' is invalid; must be 'true' or 'false', not 'maybe'"),
        ("<winsize_fallback_multiplier>nan</winsize_fallback_multiplier>", "must be a number from 0, not 'nan'"),
        ("<override><fieldname>a</fieldname></override>", "'item' elements stand in it, not 'fieldname'"),
        ("<override><item><length>1</length></item></override>", "must name a summary field in 'fieldname'"),
        ("<override><item><fieldname>a</fieldname><x/></item></override>", "juniperrc has no 'x'"),
    ],
)
@pytest.mark.parametrize("place", ["root", "content", "document"])
def test_what_is_wrong_is_told(place: str, inside: str, problem: str) -> None:
    with pytest.raises(InvalidPackage) as caught:
        model_of(**{place: JUNIPER.format(inside)})
    assert problem in caught.value.message


def test_what_is_for_streaming_search_is_not_said_of_types_that_are_so_searched() -> None:
    people = """
    schema {0} {{
        document {0} {{
            struct person {{ field name type string {{}} }}
            field people type array<person> {{ indexing: index | summary }}
            field note type string {{ indexing: index
                match: substring }}
        }}
        fieldset default {{ fields: note, people.name }}
    }}"""
    files = {"services.xml": SERVICES.format(root="", container="", content="", document="")}
    files |= {f"schemas/{name}.sd": people.format(name) for name in ("music", "book")}
    package = ApplicationPackage({path: text.encode() for path, text in files.items()})
    found = [each for each in build_model(package, lambda *_: ()).findings if each.position is not None]
    assert {each.position.source for each in found if each.position} == {"schemas/music.sd"}
    assert [each.message for each in found] == [
        "the index of field people has an effect in streaming search only",
        "match: substring of field note has an effect in streaming search only",
        "fieldset default: people.name is no attribute, naming it has an effect in streaming search only",
    ]


@pytest.mark.parametrize("name", ["music", "book"])
def test_parts_that_are_attributes_in_streaming_search_only(name: str) -> None:
    """Vespa: ComplexFieldsWithStructFieldAttributesValidator.java looks at indexed clusters alone."""
    schema = f"""
    schema {name} {{
        document {name} {{
            struct inner {{ field note type string {{}} field tags type array<string> {{}} }}
            struct person {{ field name type string {{}} field inner type inner {{}} }}
            field single type person {{
                indexing: summary
                struct-field name {{ indexing: attribute }}
                struct-field inner.tags {{ indexing: attribute }}
            }}
        }}
    }}"""
    said = dict.fromkeys(("root", "container", "content", "document"), "")
    files = {"services.xml": SERVICES.format(**said), "schemas/music.sd": MUSIC}
    files |= {"schemas/book.sd": "schema book { document book { } }", f"schemas/{name}.sd": schema}
    package = ApplicationPackage({path: text.encode() for path, text in files.items()})
    if name == "book":
        assert [each for each in build_model(package, lambda *_: ()).findings if each.position is not None] == []
        return
    with pytest.raises(InvalidPackage) as caught:
        build_model(package, lambda *_: ())
    assert [
        (each.position and each.position.line, each.message.partition(":")[0]) for each in caught.value.findings
    ] == [
        (8, "struct-field single.name of type string cannot be an attribute"),
        (9, "struct-field single.inner.tags of type array<string> cannot be an attribute"),
    ]


OPEN_NLP = '<config name="ai.vespa.opennlp.open-nlp">{}</config>'
SNOWBALL = "<snowballStemmingForEnglish>{}</snowballStemmingForEnglish>"


@pytest.mark.parametrize(
    ("root", "container", "is_snowball"),
    [("", "", False), ("", "true", True), ("true", "", True), ("true", "false", False), ("", "false", False)],
)
def test_snowball_for_english(root: str, container: str, is_snowball: bool) -> None:
    said = {"root": root, "container": container}
    model = model_of(**{place: OPEN_NLP.format(SNOWBALL.format(value)) for place, value in said.items() if value})
    field = model.schemas["music"].fields["title"]
    assert (text_profile(field).stemmer("en") == "english") == is_snowball
    assert text_profile(field).stemmer("pl") == "krovetz"
    assert not model.findings


def test_the_namespace_may_stand_apart() -> None:
    config = OPEN_NLP.format(SNOWBALL.format("true")).replace(
        "ai.vespa.opennlp.open-nlp", 'open-nlp" namespace="ai.vespa.opennlp'
    )
    assert text_profile(model_of(container=config).schemas["music"].fields["title"]).snowball_english


def test_what_of_open_nlp_has_no_effect_is_reported() -> None:
    inside = "<cjk>true</cjk><createCjkGrams>false</createCjkGrams>"
    inside += "<detectConfidenceThreshold>4.2</detectConfidenceThreshold>"
    found = [(each.level, each.message) for each in model_of(container=OPEN_NLP.format(inside)).findings]
    assert [level for level, _ in found] == ["WARNING", "INFO"]
    assert "'cjk' of ai.vespa.opennlp.open-nlp is not executed yet" in found[0][1]
    assert "'detectConfidenceThreshold'" in found[1][1]


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        ("<snowballStemmingForEnglsh>true</snowballStemmingForEnglsh>", "did you mean 'snowballStemmingForEnglish'?"),
        (SNOWBALL.format("yes"), "must be 'true' or 'false', not 'yes'"),
    ],
)
def test_what_is_wrong_with_open_nlp_is_reported(inside: str, problem: str) -> None:
    with pytest.raises(InvalidPackage) as caught:
        model_of(container=OPEN_NLP.format(inside))
    assert problem in caught.value.message


EXPRESSIONS = '<config name="paperwasp.search.ranking-expressions">{}</config>'


@pytest.mark.parametrize(
    ("root", "container", "is_allowed"),
    [("", "", True), ("", "false", False), ("false", "", False), ("false", "true", True), ("true", "false", False)],
)
def test_ranking_expressions_in_queries(root: str, container: str, is_allowed: bool) -> None:
    said = {"root": root, "container": container}
    written = {place: EXPRESSIONS.format(f"<enabled>{value}</enabled>") for place, value in said.items() if value}
    model = model_of(**written)
    assert [each.allows_expressions for each in model.containers] == [is_allowed]
    assert not model.findings


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<enabled>perhaps</enabled>", "value of 'enabled' is invalid; must be 'true' or 'false', not 'perhaps'"),
        ("<enable>false</enable>", "has no 'enable'; did you mean 'enabled'?"),
    ],
)
def test_what_is_wrong_with_the_switch_of_expressions(text: str, told: str) -> None:
    with pytest.raises(InvalidPackage) as caught:
        model_of(container=EXPRESSIONS.format(text))
    (finding,) = caught.value.findings
    assert told in finding.message
    assert finding.position is not None and finding.position.source == "services.xml"


MEMORY = '<config name="paperwasp.search.query-memory">{}</config>'


@pytest.mark.parametrize(
    ("root", "container", "size_bytes"),
    [("", "", 64 << 20), ("256MiB", "", 256 << 20), ("", "1 GiB", 1 << 30), ("8 GiB", "1048576", 1 << 20)],
)
def test_memory_of_queries(root: str, container: str, size_bytes: int) -> None:
    said = {"root": root, "container": container}
    written = {place: MEMORY.format(f"<size>{value}</size>") for place, value in said.items() if value}
    model = model_of(**written)
    assert [each.query_memory_bytes for each in model.containers] == [size_bytes]
    assert not model.findings


def test_memory_of_queries_as_who_serves_says() -> None:
    """Where services.xml does not say."""
    said = MEMORY.format("<size>64 MiB</size>")
    for root, size_bytes in (("", 1 << 30), (said, 64 << 20)):
        (container,) = model_of(str(1 << 30), root=root).containers
        assert container.query_memory_bytes == size_bytes


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<size>9 GiB</size>", "'size' is invalid; must be a size like 256MiB, from 1 MiB to 8 GiB, not '9 GiB'"),
        ("<size>1023KiB</size>", "from 1 MiB to 8 GiB, not '1023KiB'"),
        ("<size>much</size>", "from 1 MiB to 8 GiB, not 'much'"),
        ("<sizes>1GiB</sizes>", "has no 'sizes'; did you mean 'size'?"),
    ],
)
def test_what_is_wrong_with_the_memory_of_queries(text: str, told: str) -> None:
    with pytest.raises(InvalidPackage) as caught:
        model_of(container=MEMORY.format(text))
    (finding,) = caught.value.findings
    assert told in finding.message


TAGS = '<config name="container.qr-searchers"><tag>{}</tag></config>'
BOLD = "<bold><open>&lt;b&gt;</open><close>&lt;/b&gt;</close></bold>"


@pytest.mark.parametrize(
    ("root", "container", "tags"),
    [
        ("", "", HI_TAGS),
        (BOLD, "", Tags("<b>", "</b>")),
        ("", BOLD, Tags("<b>", "</b>")),
        (BOLD, "<bold><open>[</open></bold><separator>...</separator>", Tags("[", "</b>", "...")),
        ("", "<separator></separator>", Tags(separator="")),
    ],
)
def test_marks_of_words_of_queries(root: str, container: str, tags: Tags) -> None:
    said = {"root": root, "container": container}
    model = model_of(**{place: TAGS.format(value) for place, value in said.items() if value})
    assert [each.tags for each in model.containers] == [tags]
    assert not model.findings


def test_marks_may_be_said_in_search_where_other_settings_have_no_effect() -> None:
    other = TAGS.format(BOLD).replace("</config>", "<com><yahoo/></com></config>")
    text = SERVICES.format(root="", container="", content="", document="")
    text = text.replace("<search/>", f"<search>{other}<config name='a.b'/></search>")
    files = {"services.xml": text, "schemas/music.sd": MUSIC, "schemas/book.sd": "schema book { document book { } }"}
    model = build_model(ApplicationPackage({path: text.encode() for path, text in files.items()}), lambda *_: ())
    assert [each.tags for each in model.containers] == [Tags("<b>", "</b>")]
    assert len(model.findings) == 2
    assert all("element 'config' in 'search' has no effect" in finding.message for finding in model.findings)
