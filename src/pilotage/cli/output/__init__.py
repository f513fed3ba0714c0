"""Results as text and as JSON: lines in colour, tables, plans and live progress."""
