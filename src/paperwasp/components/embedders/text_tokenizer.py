"""Text to the numbers of its tokens, by a `tokenizer.json` of Hugging Face and their library `tokenizers`.

Vespa: com.yahoo.language.huggingface.HuggingFaceTokenizer
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from paperwasp import limits
from paperwasp.base.records import dataclass
from paperwasp.components.embedders.model_files import ModelFile
from paperwasp.errors import LanguageError

_LONGEST_FIRST: Final = "longest_first"
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text as a model takes them, without padding; all three of one length."""

    ids: Sequence[int]
    mask: Sequence[int]
    """1 for a token that is attended to, 0 for one that is not."""
    types: Sequence[int]


class TextTokenizer:
    """A tokenizer. Any threads."""

    def __init__(self, file: ModelFile, most_tokens: int | None, *, adds_special_tokens: bool = True) -> None:
        """`most_tokens`: where the file does not say how texts are cut; None: then they are not.

        Errors: LanguageError for a damaged file.
        """
        from tokenizers import Tokenizer

        self._name = file.name
        self._adds_special_tokens = adds_special_tokens
        if len(file.content) > limits.embedding.TOKENIZER_FILE_BYTES:
            raise LanguageError(f"{file.name} has more than {limits.embedding.TOKENIZER_FILE_BYTES} bytes")
        try:
            self._tokenizer = _guarded(lambda: Tokenizer.from_str(file.content.decode()))
        except ValueError as error:
            raise LanguageError(f"{file.name} is no tokenizer: {_shown(error)}") from None
        self._tokenizer.no_padding()
        said: dict[str, Any] | None = self._tokenizer.truncation
        self._most = _most_tokens(said, min(most_tokens or limits.embedding.TOKENS, limits.embedding.TOKENS))
        if said is None or said["strategy"] != _LONGEST_FIRST or said["max_length"] != self._most:
            self._tokenizer.enable_truncation(self._most)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text. Errors: ValueError.

        The whole text is cut into tokens before most of them are left out, a second for each MB. `encode` of the
        library holds the interpreter's lock all that time, this does not; nor does it compute places in the text.
        """
        special = self._adds_special_tokens
        found = _guarded(lambda: self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=special))
        return [Tokens(each.ids, each.attention_mask, each.type_ids) for each in found]

    def notes(self, setting: str, wanted: int | None) -> Iterator[str]:
        """What to warn of where a component says how many tokens a text has, and the file says another number."""
        if wanted is not None and wanted != self._most:
            yield (
                f"{setting} {wanted} has no effect: the tokenizer '{self._name}' cuts texts at {self._most} tokens; "
                "change truncation.max_length in that file, or the setting"
            )

    def decode(self, token: int) -> str:
        """The text of one token."""
        return str(_guarded(lambda: self._tokenizer.decode([token], skip_special_tokens=False)))


def _most_tokens(said: dict[str, Any] | None, wanted: int) -> int:
    """The most tokens of a text: as the file says if it cuts as models expect it, else what is wanted, or less."""
    if said is None:
        return wanted
    own = int(said["max_length"])
    if said["strategy"] == _LONGEST_FIRST:
        return min(own, limits.embedding.TOKENS)
    return own if 0 < own <= wanted else wanted


def _guarded(work: Callable[[], _Result]) -> _Result:
    """The result. Errors: ValueError for all that the library raises, a panic in its native code included."""
    try:
        return work()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic is no Exception
        raise ValueError(_shown(error)) from None


def _shown(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
