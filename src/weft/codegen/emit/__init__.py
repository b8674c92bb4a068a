"""Emission for every machine: the shared context, the registry of lowerings, elementwise ops, scalars and control flow.

From the bottom: `elementwise` and `faults`, then `context`, then the tables of `scalars` and `control`. Nothing here
knows what a tile is in LLVM.
"""
