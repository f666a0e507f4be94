"""What is kept of the texts that came last."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from paperwasp.text.parsing.text_memory import TextMemory


def test_the_oldest_make_room() -> None:
    memory: TextMemory[str, int] = TextMemory(10, 6)
    for place, text in enumerate(("aaaa", "bbbb", "aaaa", "cc", "d", "too long")):
        memory.add(text, place, len(text))
    assert [memory.get(text) for text in ("aaaa", "bbbb", "cc", "d", "too long")] == [None, 1, 3, 4, None]
    assert memory.characters == 7 and len(memory) == 3


def test_the_characters_are_those_of_what_is_kept_whoever_adds() -> None:
    memory: TextMemory[int, int] = TextMemory(500, 40)

    def add(first: int) -> None:
        for number in range(first, first + 2000):
            memory.add(number % 300, number, number % 300 // 8)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert memory.characters == sum(number // 8 for number in range(300) if memory.get(number) is not None) <= 500
