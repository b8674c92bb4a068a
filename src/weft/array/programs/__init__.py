"""An expression as programs in the kernel language: rewritten, brought into canonical form, scheduled into kernels, written.

In this order: `narrow` and `parts` leave only types that kernels have, `canonical` merges views into accesses, `schedule` decides
which nodes share a kernel, `domain` how a kernel walks its elements, `text` and `product` write it.
"""
