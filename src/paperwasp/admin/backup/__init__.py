"""Backups of a data directory: a list of files with their checksums, and the files.

Format: docs/internals/formats/backup.md.

    archive   the stream of `base.file_snapshot` as a file, compressed or not, or unpacked: written, verified, restored
    placing   restored data put in the place of what is there

Nothing here knows what the files mean.
"""
