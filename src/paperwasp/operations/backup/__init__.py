"""Backups of a data directory: a list of files with their checksums, and the files.

Format: docs/internals/formats/backup.md.

    sources   the files of one moment, open for reading                     (`source`)
    a stream  a tar archive of them, whose last member is the manifest      (`stream`, `manifest`)
    a backup  that stream as a file, compressed or not, or unpacked          (`destination`)
    restoring read and verified, then put in the place of what is there      (`reading`, `restoring`)

Nothing here knows what the files mean.
"""
