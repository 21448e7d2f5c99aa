"""Figures 2 and 6: test error against sample size; parameters, runs, tables, pictures, verdicts."""
