"""The NVIDIA backend: laid-out tile IR to LLVM IR for NVPTX, and to PTX."""
