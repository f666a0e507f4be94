"""`vespa visit | vespa feed` copies a corpus of every field type into a second service, bit for bit."""

from __future__ import annotations

import base64
import json
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.chance import SEED
from tests.real_clients.test_vespa_cli import binary, vespa
from tests.service.running import RunningService, running_service

pytestmark = pytest.mark.clients
DOCUMENTS = 300
SERVICES = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="records" version="1.0">
    <redundancy>1</redundancy>
    <documents>
      <document type="artist" mode="index" global="true"/>
      <document type="album" mode="index"/>
    </documents>
    <nodes><node hostalias="node1" distribution-key="0"/></nodes>
  </content>
</services>
"""
ARTIST = "schema artist { document artist { field name type string { indexing: attribute | summary } } }"
Draw = Callable[[random.Random], Any]
"""How a value is drawn."""
PLAIN_TYPES: dict[str, Draw] = {
    "bool": lambda chance: chance.random() < 0.5,
    "byte": lambda chance: chance.choice((-128, 127, 0, chance.randrange(-128, 128))),
    "int": lambda chance: chance.choice((-(2**31) + 1, 2**31 - 1, chance.randrange(-1000, 1000))),
    "long": lambda chance: chance.choice((-(2**63) + 1, 2**63 - 1, chance.randrange(-(2**53), 2**53))),
    "float": lambda chance: chance.choice((0.1, 3.4028234e38, 1e-40, chance.uniform(-1, 1))),
    "double": lambda chance: chance.choice((0.1, 1.7976931348623157e308, 5e-324, chance.uniform(-1e9, 1e9))),
    "string": lambda chance: "".join(chance.choices('ab é漢🎷"\\\n\t/{}[]', k=chance.randint(1, 12))),
    "uri": lambda chance: f"https://example.com/{chance.randrange(100)}?q=é#x",
    "raw": lambda chance: base64.b64encode(chance.randbytes(chance.randint(1, 50))).decode(),
    "position": lambda chance: {
        "lat": chance.randrange(-9000, 9000) / 100,
        "lng": chance.randrange(-18000, 18000) / 100,
    },
    "predicate": lambda chance: f"gender in ['Female'] and age in [{chance.randrange(50)}..99]",
    "reference<artist>": lambda chance: f"id:a:artist::{chance.randrange(5)}",
    "pair": lambda chance: {"name": f"n{chance.randrange(9)}", "weight": chance.randrange(-5, 5)},
}
SEVERAL = ("byte", "int", "long", "float", "double", "string", "raw", "uri", "bool", "pair", "position")
KEYS = ("int", "long", "string", "byte")
TENSORS: dict[str, Draw] = {
    "tensor(x[3])": lambda chance: [chance.uniform(-1, 1) for _ in range(3)],
    "tensor<float>(x[2],y[2])": lambda chance: [[chance.uniform(-1, 1), 0.1], [1e-40, 2.0]],
    "tensor<int8>(x[4])": lambda chance: [chance.randrange(-128, 128) for _ in range(4)],
    "tensor<bfloat16>(x{})": lambda chance: {f"é {n}": chance.uniform(-1, 1) for n in range(chance.randint(1, 4))},
    "tensor<float>(x{},y[2])": lambda chance: {"a b": [0.1, chance.random()], '"': [1.0, 2.0]},
    "tensor(x{},y{})": lambda chance: [
        {"address": {"x": "a", "y": f"{n}"}, "value": chance.random()} for n in range(chance.randint(1, 4))
    ],
}


def array_of(draw: Draw) -> Draw:
    return lambda chance: [draw(chance) for _ in range(chance.randint(1, 4))]


def mapping_of(key: Draw, value: Draw) -> Draw:
    return lambda chance: {str(key(chance)): value(chance)}


def weight(chance: random.Random) -> int:
    return chance.randrange(-9, 9) or 1


def fields() -> Iterator[tuple[str, Draw]]:
    """Declaration of a field's type → how a value is drawn."""
    yield from PLAIN_TYPES.items()
    for name in SEVERAL:
        yield f"array<{name}>", array_of(PLAIN_TYPES[name])
    for name in KEYS:
        yield f"weightedset<{name}>", mapping_of(PLAIN_TYPES[name], weight)
        yield f"map<{name}, pair>", mapping_of(PLAIN_TYPES[name], PLAIN_TYPES["pair"])
    yield "map<string, array<string>>", lambda chance: {"k": [PLAIN_TYPES["string"](chance)], "é": ["x"]}
    yield "array<map<string, int>>", lambda chance: [{"k": chance.randrange(9)}, {"l": 2}]
    yield from TENSORS.items()


FIELDS = {f"f{number}": found for number, found in enumerate(fields())}


def album() -> str:
    declared = []
    for name, (declaration, _) in FIELDS.items():
        is_attribute = declaration.startswith(("reference", "tensor")) or declaration in (
            "int",
            "array<string>",
            "position",
        )
        indexing = "attribute | summary" if is_attribute else "summary"
        declared.append(f"field {name} type {declaration} {{ indexing: {indexing} }}")
    declared.append("field title type string { indexing: index | summary }")
    struct = "struct pair { field name type string {} field weight type int {} }"
    return f"schema album {{ document album {{ {struct} {' '.join(declared)} }} }}"


def corpus() -> list[dict[str, Any]]:
    """Operations of a feed: documents with ids of every kind, from one with no field to one with all of them.

    No id has a plus: the CLI sends it bare, which means a space in a path, in Vespa too.
    """
    chance = random.Random(SEED)
    operations: list[dict[str, Any]] = [{"put": f"id:a:artist::{n}", "fields": {"name": f"é {n}"}} for n in range(5)]
    for number in range(DOCUMENTS):
        place = ("", f"g=group {number % 7}", f"n={number % 5}")[number % 3]
        drawn = {name: draw(chance) for name, (_, draw) in FIELDS.items() if chance.random() < (number % 11) / 10}
        operations.append({"put": f'id:b c:album:{place}:{number}/é x%"?', "fields": drawn})
    return operations


def path(id: str) -> str:
    _, namespace, document_type, place, name = id.split(":", 4)
    kind = {"g": "group/", "n": "number/", "": "docid"}[place[:1]] + quote(place[2:], safe="")
    return f"/document/v1/{quote(namespace)}/{document_type}/{kind}/{quote(name, safe='')}"


def bodies(service: RunningService, ids: list[str]) -> dict[str, bytes]:
    """What a get answers, to the byte."""
    with httpx.Client(base_url=service.url) as client:
        answers = {id: client.get(path(id)) for id in ids}
    assert not [(id, answer.text) for id, answer in answers.items() if answer.status_code != 200]
    return {id: answer.content for id, answer in answers.items()}


@pytest.mark.parametrize("form", [(), ("--stream",)], ids=["plain", "streamed"])
def test_a_copy_is_the_same_to_the_bit(tmp_path: Path, form: tuple[str, ...]) -> None:
    application = tmp_path / "application"
    (application / "schemas").mkdir(parents=True)
    (application / "services.xml").write_text(SERVICES)
    (application / "schemas" / "artist.sd").write_text(ARTIST)
    (application / "schemas" / "album.sd").write_text(album())
    operations = corpus()
    (tmp_path / "feed.jsonl").write_text("\n".join(map(json.dumps, operations)))
    with (
        running_service(tmp_path / "first", str(application)) as first,
        running_service(tmp_path / "second", str(application)) as second,
    ):
        told = json.loads(vespa(tmp_path, first.url, "feed", str(tmp_path / "feed.jsonl")))
        assert told["feeder.ok.count"] == len(operations), f"{told}: seed {SEED}"
        visit = [str(binary()), "visit", "-t", first.url, *form]
        with subprocess.Popen(visit, stdout=subprocess.PIPE) as visiting:
            feed = [str(binary()), "feed", "-t", second.url, "-"]
            fed = subprocess.run(feed, stdin=visiting.stdout, capture_output=True, text=True, timeout=120)
        assert (visiting.returncode, fed.returncode) == (0, 0), fed.stdout + fed.stderr
        assert json.loads(fed.stdout)["feeder.ok.count"] == len(operations), f"{fed.stdout}: seed {SEED}"
        ids = [operation["put"] for operation in operations]
        copied, original = bodies(second, ids), bodies(first, ids)
        for id in ids:
            assert copied[id] == original[id], f"seed {SEED}"
        written = [vespa(tmp_path, service.url, "visit", *form) for service in (first, second)]
        assert written[0] == written[1], f"seed {SEED}"
        assert written[0].count("\n") == len(operations)
