"""The state of the resident blocks, the program bound to it, and the order in which threads run."""
