"""One module for each system; `weft.semantics` is the façade."""
