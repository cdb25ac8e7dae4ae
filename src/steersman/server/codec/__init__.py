"""Decoding and encoding of objects: JSON, YAML, protobuf, strict decoding, and content negotiation."""
