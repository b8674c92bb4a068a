"""Plans: how a tensor gets from one layout into another, as data that can be priced, simulated and emitted.

Imports every room but `interop` and `text`.
"""
