"""The API that client and service agree on, written once: paths, rules for ids and sizes, requests, replies, routes."""
