"""Passes over laid-out tile IR for NVIDIA GPUs: scratch in shared memory, and barriers where hazards are."""
