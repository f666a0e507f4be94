"""Finds what is wrong with a machine, a data directory and a running service, and says what to do about it.

Everything is only read, but for one small file by which syncing is measured.

    machine   Python, libraries, memory, cores, limits of the system; the disk and how fast it syncs; ports
    data      the data directory, file by file: checkpoints and logs, too
    report    all findings, and what a running service says of itself
"""
