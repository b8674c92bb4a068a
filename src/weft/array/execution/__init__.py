"""Expressions computed: by generated kernels (`native`), or by NumPy (`reference`), which says what each node means."""
