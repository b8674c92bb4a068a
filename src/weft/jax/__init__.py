"""Kernels in JAX programs: `call` runs a kernel on XLA's buffers, inside ``jit``, ``vmap`` and functions with custom gradients.

JAX is imported when this package is. weft works without it.
"""

from weft.jax.calls import call, triton_call

__all__ = ["call", "triton_call"]
