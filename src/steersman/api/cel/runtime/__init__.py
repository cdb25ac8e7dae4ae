"""The values of CEL and the functions on them: what a compiled expression is made of.

::

    values         the values, their types and sizes, and errors
    operators      arithmetic, order, equality, membership, look-up
    conversions    int(), string(), timestamp() …, and the parts of times
    text           strings and regular expressions        formatting    "%s".format([x])
    lists          lists, sets, maps and optionals
    network        URLs, IP addresses, CIDRs
    kubernetes     quantities, versions, named formats, authorization
"""
