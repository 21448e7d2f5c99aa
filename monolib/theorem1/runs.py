"""The cells of Theorem 1's page, by part."""

from itertools import product

from monolib.cells import Cell
from monolib.theorem1.cells import theorem1_cell
from monolib.theorem1.parameters import Theorem1Parameters

STARTS_AT = 1_000  # streams of the ascents for Lemma 6; those of Lemma 8 count from 1


def planned_cells(p: Theorem1Parameters) -> dict[str, list[Cell]]:
    """Cells by part: landscape, labels, times, widths, epsilons, theorem, sgd."""
    flow = (p.flow_clusters, p.flow_separation, p.seed)
    chunks = range(1, 1 + -(-p.n_labels // p.label_chunk))
    widest = max(p.tracking_widths)
    smallest = p.tracking_epsilons[-1]
    return {
        "landscape": [
            theorem1_cell("ascent", k, r, p.seed, count=p.n_starts, index=STARTS_AT)
            for k, r in product(p.clusters, p.separations)
        ],
        "labels": [
            theorem1_cell("ascent", p.label_clusters, p.label_separation, p.seed, count=p.label_chunk, index=i)
            for i in chunks
        ],
        "times": [
            theorem1_cell("times", p.flow_clusters, r, p.seed, count=p.time_neurons, delta=p.theorem_delta)
            for r in p.time_separations
        ],
        "epsilons": [
            theorem1_cell("tracking", *flow, width=widest, epsilon=e, copies=False, time=p.tracking_time)
            for e in p.tracking_epsilons
        ],
        "widths": [
            theorem1_cell("tracking", *flow, width=m, epsilon=smallest, copies=True, time=p.tracking_time)
            for m in p.tracking_widths
        ],
        "theorem": [
            theorem1_cell("theorem", *flow, width=p.theorem_width, delta=p.theorem_delta, epsilon=e)
            for e in p.theorem_epsilons
        ],
        "sgd": [
            theorem1_cell(
                "sgd",
                *flow,
                width=p.theorem_width,
                epsilon=p.sgd_epsilon,
                step=p.sgd_step,
                batch=b,
                n_steps=max(1, round(p.tracking_time / p.sgd_step)),
            )
            for b in p.sgd_batches
        ],
    }
