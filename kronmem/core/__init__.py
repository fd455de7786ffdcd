"""Pure: no clock, no socket, no file. A table in `kronvex` lists the habits of the vendor's server and where each is
handled."""
