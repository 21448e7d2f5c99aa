"""The notebook page on kernels and RFM: parameters, runs, tables, pictures, verdicts."""
