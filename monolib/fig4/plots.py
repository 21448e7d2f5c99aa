"""The pictures of Figure 4 that are drawn from its tables: the variants of the gated fits."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from monolib.plot_style import METHOD_COLORS, METHOD_NAMES, STYLE


def draw_variants(variants: pd.DataFrame) -> Figure:
    """Test MSE of every variant, one marker per seed, gated Laplace and gated RFM, and the network they come from."""
    names = list(dict.fromkeys(variants["variant"]))
    place = {name: i for i, name in enumerate(names)}
    series = {"gated_laplace": "<", "gated_rfm": ">"}
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(7.2, 0.34 * len(names) + 1.3), layout="constrained")
        y = variants["variant"].map(place).to_numpy(dtype=float)
        for shift, (column, marker) in zip((-0.12, 0.12), series.items(), strict=True):
            axis.plot(
                variants[column],
                y + shift,
                marker,
                color=METHOD_COLORS[column],
                ms=5,
                alpha=0.8,
                label=METHOD_NAMES[column],
            )
        known = variants["network_test_mse"].notna().to_numpy()
        errors = variants.loc[known, "network_test_mse"].to_numpy(dtype=float)
        axis.plot(errors, y[known], "o", color=METHOD_COLORS["relu"], ms=4, mfc="none", label="its ReLU network")
        axis.set_yticks(np.arange(len(names)), names)
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_xlabel("test MSE")
        axis.grid(axis="x", color="0.92")
        axis.set_axisbelow(True)
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
