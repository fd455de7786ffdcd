"""The parts that all framework packs share: injected block, capture, bounded call, log-once guard, checks.

A pack imports these and kronmem's public names, and nothing else of kronmem.
"""
