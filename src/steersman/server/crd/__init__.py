"""CustomResourceDefinitions and the custom resources they make.

::

    life        install(server): names, establishing, serving, the end
    definitions what is refused of a definition      schemas, structure   what is refused of its schemas
    version     one served version: prune, fill in, check      resource   how the server treats its objects
    custom      the object itself
    warnings    what a definition asks for that is not done here
"""
