"""``--data-dir``: what is acknowledged outlives the process, and the machine's power.

::

    disk        open_disk(path): the store, the log and small values of a data directory
    log         group commit: durable(revision)          documents   objects as JSON and back
    database    the tables in SQLite, and their checks   files       the directory, its lock, its witness
    snapshot    save and restore in one file             refusals    why a directory is not used
    ordeal      a writer to be killed, and what must be true afterwards
"""
