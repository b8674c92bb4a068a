"""Stubs of the part of llvmlite 0.50 that weft uses; add what you need, spelled as llvmlite does."""
