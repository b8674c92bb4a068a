"""Layouts in other notations: JSON, Triton's and Gluon's encodings, CuTe's shape and stride."""
