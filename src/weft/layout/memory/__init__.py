"""Memory layouts: where a tensor's elements lie in shared or tensor memory, bank conflicts, and swizzles.

Imports `algebra` and `families`.
"""
