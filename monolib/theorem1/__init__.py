"""Theorem 1, checked numerically (§4.1, B.1): neurons of a small network specialise to single clusters."""
