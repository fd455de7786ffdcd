"""The contracts that the server answers: Kronvex, BotWire, Memstore."""
