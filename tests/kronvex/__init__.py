"""What the recorded server does to a client, and what the client makes of it: one file per kind of habit."""
