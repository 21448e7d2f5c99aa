"""Figures 1 and 5: MLPs develop specialised first-layer neurons (§3.1, A.1)."""
