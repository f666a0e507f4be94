"""The gid map against a dict, through growth and removal."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.storage.documents.gid_map import NO_LID, GidMap
from tests.oracles import gid_map as twin

# Few distinct hashes, so that runs of probes form and removal must move entries back.
GIDS = st.tuples(st.integers(0, 255), st.integers(0, 3), st.sampled_from([0, 1, 1022, 1023])).map(
    lambda parts: bytes([parts[0], parts[1], 0, 0]) + parts[2].to_bytes(8, "little")
)
STEPS = st.lists(st.tuples(st.booleans(), st.lists(GIDS, max_size=40)), max_size=30)


@given(STEPS)
def test_against_a_dict(steps: list[tuple[bool, list[bytes]]]) -> None:
    table, expected, next_lid = GidMap(), dict[bytes, int](), 0
    for is_insert, gids in steps:
        if is_insert:
            lids = list(range(next_lid, next_lid := next_lid + len(gids)))
            previous = table.insert(b"".join(gids), np.array(lids, np.uint32))
            assert previous.tolist() == twin.insert(expected, gids, lids)
        else:
            assert table.remove(gids).tolist() == twin.remove(expected, gids)
        assert table.count == len(expected)
        known = [*expected, *gids]
        assert table.find(b"".join(known)).tolist() == twin.find(expected, known)


def test_it_grows() -> None:
    random = np.random.default_rng(3)
    gids = random.bytes(12 * 5000)
    table = GidMap()
    for start in range(0, 5000, 100):
        table.insert(gids[start * 12 : start * 12 + 1200], np.arange(start, start + 100, dtype=np.uint32))
    assert table.find(gids).tolist() == list(range(5000))
    table.remove([gids[place * 12 : place * 12 + 12] for place in range(0, 5000, 2)])
    assert table.count == 2500
    assert table.find(gids[12:24]).tolist() == [1] and table.find(gids[:12]).tolist() == [NO_LID]
