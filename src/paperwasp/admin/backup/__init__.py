"""Backups of a data directory: a list of files with their checksums, and the files.

Format: docs/internals/formats/backup.md.

    files     those of one moment, open for reading; their manifest; a tar archive that ends with it
    archive   that stream as a file, compressed or not, or unpacked: written, verified, restored
    placing   restored data put in the place of what is there

Nothing here knows what the files mean.
"""
