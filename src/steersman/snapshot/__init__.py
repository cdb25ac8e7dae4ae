"""Snapshots of live clusters: all objects that may be listed, in one file.

::

    read_cluster    lists a cluster page by page, one resourceVersion per kind
    redaction       replaces the data of Secrets and ConfigMaps by hashes
    file            the file format: a header line, then compressed documents
    loading         a store with the objects, for an embedded server

The objects of a cluster go from `read_cluster` or `file.read` to a `model.Sink`: a file or a store.
"""
