"""What the paper prints for Figure 1, and the sizes it was computed at (§3.1, A.1)."""

from typing import Any

import pandas as pd

PAPER_TABLE = pd.DataFrame(
    [
        ("relu", "hidden", 613, 45.5, 33.4, 71.1, 49.1),
        ("gelu", "hidden", 1710, 49.9, 28.2, 68.2, 43.1),
        ("reglu", "gate", 453, 73.1, 56.1, 96.7, 73.5),
        ("reglu", "value", 453, 28.5, 3.8, 69.1, 24.7),
        ("swiglu", "gate", 551, 43.6, 19.1, 91.7, 38.1),
        ("swiglu", "value", 551, 46.3, 14.9, 87.5, 41.4),
    ],
    columns=["architecture", "weights", "active", "cos_071", "cos_090", "dominant", "dominant_2x"],
)

PAPER_SIZE: dict[str, Any] = {
    "n_clusters": 10,
    "dim": 40,
    "center_scale": 20.0,
    "noise_std": 0.005,
    "n_train": 100_000,
    "n_validation": 4096,
    "n_test": 2048,
    "width": 2048,
    "batch_size": 2048,
    "steps_relu": 40_000,
    "steps_gelu": 20_000,
    "steps_reglu": 20_000,
    "steps_swiglu": 20_000,
    "learning_rates_relu": [0.004, 0.008, 0.012, 0.016, 0.024, 0.032],
    "learning_rates_gelu": [0.016],
    "learning_rates_reglu": [0.0016],
    "learning_rates_swiglu": [0.0256],
    "final_rate_fraction": 0.1,
    "active_share": 0.999,
}
