"""What is right or wrong with a machine, a data directory and a running service, and what to do about it.

Everything is only read, but for one small file by which syncing is measured.

    machine   Python, libraries, memory, cores, limits of the system       (`machine`)
    disk      room, file system, how fast it syncs                         (`disk`)
    ports     free, or who has them                                        (`ports`)
    data      the data directory, file by file                             (`data`, `log`, `checkpoint`)
    service   what a running service says of itself                        (`service`)
"""
