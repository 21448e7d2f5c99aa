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

METHOD_COLORS = {"relu": "#1f77b4", "gelu": "#17a2a2", "reglu": "#d62728", "swiglu": "#e08214"}
METHOD_NAMES = {"relu": "ReLU", "gelu": "GELU", "reglu": "ReGLU", "swiglu": "SwiGLU"}
BLOCK_COLORS = {"routing": "#7f7f7f", "predictive": "#2ca02c", "nuisance": "#c7c7c7"}
