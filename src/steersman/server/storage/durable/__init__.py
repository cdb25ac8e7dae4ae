"""``--data-dir``: durable storage. Acknowledged writes survive a crash of the process and a loss of power.

::

    data_dir    open_data_dir(path): the store, the transaction log and the blobs of a data directory
    log         group commit: durable(revision)          documents   objects as JSON documents and back
    database    the SQLite tables and their checks       files       the directory, its lock and its files
    snapshot    save and restore as one file             errors      why a directory cannot be used
"""
