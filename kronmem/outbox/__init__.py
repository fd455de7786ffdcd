"""remember_later: the queue on disk, the thread that delivers it, and who holds a lease."""
