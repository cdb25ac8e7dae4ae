"""Request bodies to objects and back: JSON, YAML, protobuf, content negotiation, field validation."""
