"""Query profiles: beside a plain resolver, under limits, from files that nobody would write, and as golden scripts."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.application.query_profiles import FOLDER, NO_QUERY_PROFILES, QueryProfiles, parse_query_profiles
from paperwasp.errors import IllegalQuery, PaperwaspError
from tests.application.query_profiles.query_profile_scripts import SCRIPTS, run
from tests.chance import SEED

FUZZ_INPUTS = int(os.environ.get("PAPERWASP_FUZZ", "2000"))


def parsed(**files: str) -> QueryProfiles:
    by_path = {f"{FOLDER}/{path.replace('__', '/')}.xml": text.encode() for path, text in files.items()}
    profiles, findings = parse_query_profiles(by_path)
    assert findings == ()
    return profiles


def errors(**files: str) -> list[str]:
    by_path = {f"{FOLDER}/{path.replace('__', '/')}.xml": text.encode() for path, text in files.items()}
    profiles, findings = parse_query_profiles(by_path)
    assert profiles is NO_QUERY_PROFILES
    return [finding.message for finding in findings if finding.level == "ERROR"]


@dataclass
class PlainLayer:
    """What a layer says, for the plain resolver."""

    when: tuple[str | None, ...] = ()
    values: dict[str, str] = field(default_factory=dict)
    references: dict[str, PlainProfile] = field(default_factory=dict)
    inherits: list[PlainProfile] = field(default_factory=list)

    def xml(self) -> str:
        values = "".join(f'<field name="{name}">{escape(value)}</field>' for name, value in self.values.items())
        return values + "".join(
            f'<field name="{name}"><ref>{target.name}</ref></field>' for name, target in self.references.items()
        )

    def inherited(self) -> str:
        return quoteattr(" ".join(parent.name for parent in self.inherits))


@dataclass
class PlainProfile:
    """A profile, for the plain resolver: looks up one name at a time, without any table."""

    name: str
    dimensions: tuple[str, ...] = ()
    layers: list[PlainLayer] = field(default_factory=list)
    """The last one is its own."""

    def all_dimensions(self) -> tuple[str, ...]:
        if self.dimensions:
            return self.dimensions
        return next((found for parent in self.layers[-1].inherits if (found := parent.all_dimensions())), ())

    def lookup(self, name: str, context: Mapping[str, str]) -> str | None:
        for layer in self.matching(context):
            if name in layer.values:
                return layer.values[name]
            for prefix in sorted(layer.references, key=lambda prefix: -prefix.count(".")):
                if name.startswith(f"{prefix}."):
                    found = layer.references[prefix].lookup(name.removeprefix(f"{prefix}."), context)
                    if found is not None:
                        return found
            for parent in layer.inherits:
                if (found := parent.lookup(name, context)) is not None:
                    return found
        return None

    def matching(self, context: Mapping[str, str]) -> list[PlainLayer]:
        dimensions = self.all_dimensions()

        def weight(layer: PlainLayer) -> int:
            """A bit for every dimension that must have a value; the first weighs most."""
            return sum(1 << len(dimensions) - place for place, value in enumerate(layer.when) if value is not None)

        matching = [
            layer
            for layer in self.layers
            if all(value in (None, context.get(name)) for name, value in zip(dimensions, layer.when, strict=False))
        ]
        return sorted(matching, key=weight, reverse=True)

    def xml(self) -> str:
        *variants, own = self.layers
        dimensions = f"<dimensions>{','.join(self.dimensions)}</dimensions>" if self.dimensions else ""
        nested = "".join(
            f'<query-profile for="{",".join(value or "*" for value in layer.when)}" inherits={layer.inherited()}>'
            f"{layer.xml()}</query-profile>"
            for layer in variants
        )
        body = f"{dimensions}{own.xml()}{nested}"
        return f'<query-profile id="{self.name}" inherits={own.inherited()}>{body}</query-profile>'


PARTS = ("a", "b", "c")
DIMENSIONS = ("x", "y", "z")


NAMES = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(".".join)


def layers(mark: str, when: tuple[str | None, ...], earlier: list[PlainProfile]) -> st.SearchStrategy[PlainLayer]:
    """Layers whose values all differ, by `mark`."""
    others = st.sampled_from(earlier) if earlier else st.nothing()
    return st.builds(
        PlainLayer,
        when=st.just(when),
        values=st.sets(NAMES, max_size=3).map(lambda names: {name: f"{mark}/{when}/{name}" for name in sorted(names)}),
        references=st.dictionaries(NAMES, others, max_size=2 if earlier else 0),
        inherits=st.lists(others, max_size=2 if earlier else 0, unique_by=id),
    )


@st.composite
def forests(draw: st.DrawFn) -> list[PlainProfile]:
    """Profiles of which each inherits and refers to earlier ones."""
    found: list[PlainProfile] = []
    for number in range(draw(st.integers(1, 5))):
        profile = PlainProfile(f"p{number}", draw(st.sampled_from([(), DIMENSIONS[:2], DIMENSIONS])))
        profile.layers.append(draw(layers(profile.name, (), found)))
        values = [st.sampled_from([None, "1", "2"]) for _ in profile.all_dimensions()]
        whens = draw(st.lists(st.tuples(*values).filter(any), max_size=3, unique=True)) if values else []
        profile.layers[:0] = [draw(layers(profile.name, when, found)) for when in whens]
        found.append(profile)
    return found


CONTEXTS = st.fixed_dictionaries({name: st.sampled_from(["", "1", "2", "3"]) for name in DIMENSIONS})


@given(forests(), st.lists(CONTEXTS, min_size=1, max_size=4))
def test_profiles_resolve_as_plain_lookup_does(forest: list[PlainProfile], contexts: list[dict[str, str]]) -> None:
    profiles = parsed(**{profile.name: profile.xml() for profile in forest})
    for context in contexts:
        for plain in forest:
            resolved = profiles.compile(plain.name, context)
            assert resolved is not None
            for name in (*resolved.values, *PARTS, "a.b", "a.b.c", "c.a.b.a", "b.b.b.b"):
                assert resolved.values.get(name) == plain.lookup(name, context), name


def test_requests_of_one_kind_share_what_was_resolved() -> None:
    profiles = parsed(
        a='<query-profile id="a"><dimensions>x</dimensions><query-profile for="1"><field name="v">1</field>'
        "</query-profile></query-profile>"
    )
    others = [profiles.compile("a", {"x": str(number), "y": str(number)}) for number in range(2, 100)]
    assert all(other is profiles.compile("a", {}) for other in others)
    assert profiles.compile("a", {"x": "1"}) is not others[0]


def test_what_is_kept_ready_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "QUERY_PROFILES_RESOLVED", 4)
    values = "".join(f'<query-profile for="{n}"><field name="v">{n}</field></query-profile>' for n in range(20))
    profiles = parsed(a=f'<query-profile id="a"><dimensions>x</dimensions>{values}</query-profile>')
    for number in [*range(20), *range(20)]:
        resolved = profiles.compile("a", {"x": str(number)})
        assert resolved is not None and resolved.values == {"v": str(number)}
    assert len(profiles._resolved) <= 4


def chain(count: int, body: str) -> dict[str, str]:
    """Profiles of which each has the body, with the number of the next in it."""
    bodies = [*(body.format(n + 1) for n in range(count)), '<field name="v">1</field>']
    return {f"p{n}": f'<query-profile id="p{n}">{body}</query-profile>' for n, body in enumerate(bodies)}


def test_references_that_grow_without_measure_are_refused() -> None:
    both = '<field name="a"><ref>p{0}</ref></field><field name="b"><ref>p{0}</ref></field>'
    found = errors(**chain(40, both))
    assert any("has more than 100000 values" in message for message in found)


def test_deep_references_are_refused() -> None:
    found = errors(**chain(limits.QUERY_PROFILE_DEPTH + 20, '<field name="a"><ref>p{0}</ref></field>'))
    assert any("deeper than" in message for message in found)
    assert parsed(**chain(limits.QUERY_PROFILE_DEPTH - 1, '<field name="a"><ref>p{0}</ref></field>'))


def test_deep_inheritance_of_types_is_refused() -> None:
    files = {f"types__t{n}": f'<query-profile-type id="t{n}" inherits="t{n + 1}"/>' for n in range(2000)}
    assert any("deeper than" in message for message in errors(**files))


def test_long_names_are_refused() -> None:
    name = ".".join("a" * (limits.QUERY_PROFILE_DEPTH + 1))
    (found,) = errors(a=f'<query-profile id="a"><field name="{name}">1</field></query-profile>')
    assert "has more than 64 parts" in found


def test_substitutions_that_grow_without_measure_are_refused() -> None:
    fields = "".join(f'<field name="v{n}">%{{v{n + 1}}}%{{v{n + 1}}}</field>' for n in range(40))
    profiles = parsed(a=f'<query-profile id="a">{fields}<field name="v40">long</field></query-profile>')
    resolved = profiles.compile("a", {})
    assert resolved is not None
    with pytest.raises(IllegalQuery, match="is longer than"):
        profiles.values(resolved, {}, {})


def test_no_files_no_profiles() -> None:
    profiles, findings = parse_query_profiles({"services.xml": b"<services/>", f"{FOLDER}/readme.md": b""})
    assert (len(profiles), profiles.has_default, findings) == (0, False, ())
    assert profiles.compile("", {}) is None


def test_what_pyvespa_writes_is_read() -> None:
    profiles, findings = parse_query_profiles(
        {
            f"{FOLDER}/default.xml": b'<query-profile id="default" type="root">\n</query-profile>',
            f"{FOLDER}/types/root.xml": b'<query-profile-type id="root">\n    \n    '
            b'<field name="ranking.features.query(q)" type="tensor&lt;float&gt;(x[3])" />\n    \n</query-profile-type>',
        }
    )
    assert profiles.has_default
    assert findings == ()


PIECES = (
    '<query-profile id="', '<query-profile-type id="', "</query-profile>", "</query-profile-type>", '<field name="',
    "</field>", "<ref>", "</ref>", "<strict/>", '<match path="true"/>', "<dimensions>", "</dimensions>", "x,y", ">",
    '">', '"/>', '" type="', '" inherits="', '" overridable="false', '" mandatory="true', '" alias="', "%{", "}", ".",
    "a", "b", "a.b", "default", "native", "integer", "tensor(x[3])", "query-profile:T", "T",
    "ranking.features.query(x)", '<query-profile for="', "1,2",
    "*", "hits", "12", ":1.2", "/", " ", "&lt;", "&", "<!-- -->", "%{.a}", "ref:a", "é",
)  # fmt: skip
WHOLE = {
    "a": '<query-profile id="a" inherits="b"><dimensions>x,y</dimensions><field name="a">%{b}</field>'
    '<query-profile for="1"><field name="a.b"><ref>b</ref></field></query-profile></query-profile>',
    "b": '<query-profile id="b" type="T"><field name="a.b">1</field>'
    '<field name="b" overridable="false">%{.a.b}%{c}</field></query-profile>',
    "default": '<query-profile id="default"><field name="x"><ref>a</ref></field>'
    '<field name="hits">7</field></query-profile>',
    "types/T": '<query-profile-type id="T" inherits="U native"><match path="true"/>'
    '<field name="a" type="query-profile:U"/><field name="a.d.e" type="integer"/>'
    '<field name="b" type="string" alias="c d"/></query-profile-type>',
    "types/U": '<query-profile-type id="U"><field name="b" type="integer"/><field name="c" type="query-profile:T"/>'
    '<field name="ranking.features.query(x)" type="tensor(x[3])"/></query-profile-type>',
}


def fuzzed(chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Files that are nearly right."""
    for path, text in WHOLE.items():
        for _ in range(chance.choice((0, 0, 0, 1, 2, 4))):
            start = chance.randrange(len(text))
            end = start + chance.choice((0, 0, 1, 5, 30))
            text = text[:start] + chance.choice(PIECES) + text[end:] + " "
        content = text.encode()
        if chance.random() < 0.05:
            place = chance.randrange(len(content))
            content = content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]
        if chance.random() < 0.95:
            yield f"{FOLDER}/{path}.xml", content


def test_anything_is_read_with_findings_and_nothing_else() -> None:
    seed = SEED
    chance = random.Random(seed)
    good = 0
    for number in range(FUZZ_INPUTS):
        files = dict(fuzzed(chance))
        try:
            profiles, findings = parse_query_profiles(files)
            assert all(finding.level in ("ERROR", "WARNING") for finding in findings)
            good += len(profiles) > 0
            use(profiles, chance)
        except Exception as error:
            raise AssertionError(f"seed {seed}, input {number}: {files}") from error
    assert good > FUZZ_INPUTS / 50


def use(profiles: QueryProfiles, chance: random.Random) -> None:
    """Asks for values, which gives them or an error of ours."""
    request = {
        chance.choice(("a", "a.b", "b", "hits", "x", "y", "C", "a.b.c")): chance.choice(("1", "2", "ref:b", "x", "b"))
        for _ in range(3)
    }
    for name in ("a", "b", "", "a/b", "T:1"):
        resolved = profiles.compile(name, request)
        if resolved is not None:
            try:
                profiles.values(resolved, request, request)
            except PaperwaspError as error:
                assert error.search_code == 3


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda p: p.stem)
def test_script(path: Path) -> None:
    run(path)
