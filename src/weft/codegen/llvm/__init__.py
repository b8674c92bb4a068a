"""LLVM values for every target: types, arithmetic, conversions, integer and transcendental functions.

Works on scalars and vectors of any length; knows no tile, no layout and no machine.
"""
