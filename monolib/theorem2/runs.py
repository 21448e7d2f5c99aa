"""The cells of Theorem 2's page, by part, and the training sizes."""

from itertools import product

from monolib.cells import Cell
from monolib.theorem2.cells import theorem2_cell
from monolib.theorem2.parameters import Theorem2Parameters


def training_size(n_clusters: int, exponent: float) -> int:
    """n = K^A, rounded."""
    return round(n_clusters**exponent)


def planned_cells(p: Theorem2Parameters) -> dict[str, list[Cell]]:
    """Cells of part "kernel" and of part "mlp"; sizes beyond `kernel_points` and `mlp_points` are left out."""
    kernel = [
        theorem2_cell("kernel", k, training_size(k, a), p.n_test, p.seed, draw, ratios=p.ratios, ridges=p.ridges)
        for k, a, draw in product(p.clusters, p.kernel_exponents, range(p.n_draws))
        if training_size(k, a) <= p.kernel_points
    ]
    settings = {
        "decay": p.mlp_decay,
        "learning_rate": p.mlp_learning_rate,
        "n_steps": p.mlp_steps,
        "batch_size": p.mlp_batch,
    }
    mlp = [
        theorem2_cell("mlp", k, training_size(k, a), p.n_test, p.seed, draw, width=p.mlp_width_factor * k, **settings)
        for k, a, draw in product(p.mlp_clusters, p.mlp_exponents, range(p.mlp_draws))
        if training_size(k, a) <= p.mlp_points
    ]
    return {"kernel": kernel, "mlp": mlp}
