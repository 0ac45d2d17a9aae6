"""How far a number would move with other subjects: the bootstrap and its intervals."""
