"""Pure functions over text: the fenced block, facts in a message, redaction."""
