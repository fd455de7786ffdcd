"""The only I/O: a `Request` goes in, a `Reply` comes out."""
