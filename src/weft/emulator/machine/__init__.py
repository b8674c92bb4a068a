"""The state of the resident blocks, the program bound to it, and who runs next."""
