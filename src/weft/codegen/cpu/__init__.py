"""The CPU's own code generation: register loops, fusion, placement, buffers, mask versions, the dot's loop nest."""
