"""Written by tools/generate_typed_kinds.py: the types of built-in kinds by their names."""
