"""The ways a conversion can go: generators of step sequences, each with a lower bound of its price."""
