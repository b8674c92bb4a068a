"""Tile IR: the `tile` dialect with its types and source positions, on xDSL's func and scf."""
