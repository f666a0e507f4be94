"""The compiled module of the package krovetzstemmer, which the build puts here (tools/build_backend.py)."""

class Stemmer:
    """Krovetz's stemmer of English words with its dictionary."""

    def stem(self, word: str) -> str:
        """Return the stem of a word in lower case; words of 25 letters and more are returned as they are."""
