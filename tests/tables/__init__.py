"""Tables that ship with the package, made from named sources; run by hand, never by the package."""
