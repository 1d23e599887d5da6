"""Plan leader moves: the target replica order of every partition, and the moves that guards block."""
