"""Published protocols: IJB, Happywhale, VoxBlink, MS1MV2."""
