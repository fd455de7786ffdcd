"""Pure: no clock, no socket, no file."""
