"""One look for all figures: sizes, fonts, and a fixed colour per method."""

from typing import Any

STYLE: Any = {  # matplotlib types its keys one by one
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
    "pdf.fonttype": 42,  # text stays text
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
}

# An oracle has the colour of its global method, and a dashed line.
METHOD_COLORS = {
    "relu": "#1f77b4",
    "gelu": "#17a2a2",
    "reglu": "#d62728",
    "swiglu": "#e08214",
    "laplace": "#7f7f7f",
    "rfm": "#6a3d9a",
    "rfm_envelope": "#6a3d9a",
    "gated_laplace": "#7fbc41",
    "gated_rfm": "#1b7837",
    "oracle_laplace": "#7f7f7f",
    "oracle_rfm": "#6a3d9a",
    "bayes": "#000000",
    "noise": "#000000",
}
METHOD_NAMES = {
    "relu": "ReLU",
    "gelu": "GELU",
    "reglu": "ReGLU",
    "swiglu": "SwiGLU",
    "laplace": "global Laplace",
    "rfm": "global RFM, last iteration",
    "rfm_envelope": "global RFM, smallest test MSE",
    "gated_laplace": "MLP-gated Laplace",
    "gated_rfm": "MLP-gated RFM",
    "oracle_laplace": "oracle Laplace",
    "oracle_rfm": "oracle RFM",
    "bayes": "Bayes predictor",
    "noise": "noise level σ²",
}
METHOD_LINES = {"rfm": "-.", "oracle_laplace": "--", "oracle_rfm": "--", "bayes": ":", "noise": ":"}  # others are solid
METHOD_MARKERS = {
    "relu": "o",
    "gelu": "v",
    "reglu": "s",
    "swiglu": "D",
    "laplace": "x",
    "rfm": "+",
    "rfm_envelope": "^",
    "gated_laplace": "<",
    "gated_rfm": ">",
    "oracle_laplace": "x",
    "oracle_rfm": "^",
    "bayes": "",
    "noise": "",
}
BLOCK_COLORS = {"routing": "#7f7f7f", "predictive": "#2ca02c", "nuisance": "#c7c7c7"}
