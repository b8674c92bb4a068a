"""One function, the same inputs, several systems: what each computes, recorded and compared line by line."""
