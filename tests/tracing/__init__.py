"""Spans: the recorder that the tests share."""
