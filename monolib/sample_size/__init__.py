"""Test error against sample size on the mixed-link law: what Figs. 2, 4 and 6 share."""
