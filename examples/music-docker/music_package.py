"""The application: songs, found by their words, the newest first where they are asked for so."""

from __future__ import annotations

from vespa.package import ApplicationPackage, Document, Field, FieldSet, RankProfile, Schema

TEXT = ["index", "summary"]
SONG = Document(
    fields=[
        Field("title", "string", indexing=TEXT, index="enable-bm25"),
        Field("artist", "string", indexing=TEXT, index="enable-bm25"),
        Field("year", "int", indexing=["attribute", "summary"]),
    ]
)
MUSIC = ApplicationPackage(
    name="music",
    schema=[
        Schema(
            name="music",
            document=SONG,
            fieldsets=[FieldSet("default", ["title", "artist"])],
            rank_profiles=[
                RankProfile("bm25", first_phase="bm25(title) + bm25(artist)"),
                RankProfile("newest", inherits="bm25", first_phase="bm25(title) + bm25(artist) + attribute(year)"),
            ],
        )
    ],
)
