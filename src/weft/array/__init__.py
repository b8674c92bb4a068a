"""Lazy arrays whose operators mean what they mean in a chosen system; see `weft.semantics`."""
