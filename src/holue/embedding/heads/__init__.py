"""Heads that say how sure an embedding is: SCF, PFE, ScaleFace, the norm."""
