"""Theorem 2, checked numerically (§4.2, B.2): what a two-layer network represents and kernels cannot learn."""
