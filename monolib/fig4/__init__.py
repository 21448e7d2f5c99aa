"""Figures 3 and 4: the clusters that a trained network encodes, extracted and reused (§3.3, A.3)."""
