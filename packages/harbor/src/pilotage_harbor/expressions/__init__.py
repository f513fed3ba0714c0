"""CEL of admission policies and match conditions: checked with types when written, run on plain dicts when used."""
