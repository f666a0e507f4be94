"""An embedder whose vectors can be computed by hand: how often a text has the letter e, and how often a."""

from collections.abc import Sequence

from paperwasp.components import Call, Setup


class Letters:
    def __init__(self, setup: Setup) -> None:
        self.letters = setup.settings.get("letters", "ea")

    def embed(self, texts: Sequence[str], call: Call) -> list[list[float]]:
        if "crash" in texts:
            raise RuntimeError("not this text")
        return [[text.count(letter) for letter in self.letters] for text in texts]


class Lines:
    """Chunks at line ends."""

    def __init__(self, setup: Setup) -> None: ...

    def chunk(self, text: str, call: Call) -> list[str]:
        return text.split(call.arguments[0] if call.arguments else "\n")
