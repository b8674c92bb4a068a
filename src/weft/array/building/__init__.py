"""Operations become nodes: one question to the system for each, then the nodes of its answer."""
