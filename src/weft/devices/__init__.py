"""PyTorch's ``cuda`` on a machine without a card: stand-ins, so that programs that name it run on CPU tensors."""
