"""What the paper states about the size of Figures 2 and 6 (A.2)."""

import pandas as pd

from monolib.fig2.parameters import Fig2Parameters

PAPER_SIZE = {
    "clusters": [1, 2, 10, 50],
    "sizes": [20_000, 50_000, 100_000, 200_000],
    "n_test": 4096,
    "seeds": [0, 1, 2, 3, 4],
    "architectures": ["relu", "gelu", "reglu", "swiglu"],
    "width": 4096,
    "batch_size": 4096,
    "learning_rate_relu": 0.01,
    "learning_rate_gelu": 0.03,
    "learning_rate_reglu": 0.003,
    "learning_rate_swiglu": 0.01,
    "final_rate_fraction": 0.01,
    "min_steps": 20_000,
    "max_steps": 200_000,
    "evaluate_every": 500,
    "target_mse": 4e-4,
    "patience": 60,
    "min_improvement": 5e-4,
    "n_updates": 3,
    "ridge": 1e-6,
    "exact_below": 11_000,
    "agop_points": 20_000,
}


def size_differences(parameters: Fig2Parameters) -> pd.DataFrame:
    """Every size and setting that the paper states and that is another one here; empty at the paper's size."""
    rows = [
        {"parameter": name, "paper": str(value), "here": str(getattr(parameters, name))}
        for name, value in PAPER_SIZE.items()
        if getattr(parameters, name) != value
    ]
    return pd.DataFrame(rows, columns=["parameter", "paper", "here"])
