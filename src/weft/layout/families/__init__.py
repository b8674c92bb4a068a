"""Families of distributed layouts (blocked, sliced, vector, matrix fragments), and shape operations on them.

Imports `algebra` alone. `distributed` has the generic families, `dealing` the construction they share, one module per
vendor the fragments of its matrix instructions, `transfer` the shape operations forward and back.
"""
