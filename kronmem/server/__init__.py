"""`kronmem serve`: the embedded engine's service on a socket (extra `server`)."""
