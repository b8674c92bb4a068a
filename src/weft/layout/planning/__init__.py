"""Plans: how a tensor is converted, reduced, scanned, gathered, loaded or stored, as data that can be priced, simulated and
emitted.

Imports every room but `interop` and `text`.
"""
