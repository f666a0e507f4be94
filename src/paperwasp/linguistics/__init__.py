"""From text to the words it is indexed and searched by."""

from paperwasp.linguistics.text import ENGLISH, NO_STEMMING, PROFILES, TextProfile, profile_of

__all__ = ["ENGLISH", "NO_STEMMING", "PROFILES", "TextProfile", "profile_of"]
