"""Cells of kind "gated": local predictors behind gates that are read off the network of another cell (A.3).

A gated cell's configuration holds that of its network's cell, whole. Computing it reads the network from the store, and
trains it first, under its own lock, where it is missing: no network is trained twice, and an interrupted training goes
on from its checkpoint.
"""

import functools
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from monolib.cells import Cell, CellRecord, CellStore
from monolib.errors import UserError
from monolib.gates import Gates, active_by_two_means, find_gates, gate_metrics, mean_contributions, profiles
from monolib.kernel_cells import NOT_RESULTS, fit_config, pooled_reports, rfm_work
from monolib.kernel_cells import stack_key as stack_key  # gated fits do not share a call either
from monolib.laws import Sample
from monolib.local_predictors import LocalFits, fit_gated
from monolib.mixed_link_data import MixedLinkData
from monolib.network_cells import compute_network_cells, trained_network
from monolib.networks import Network
from monolib.provenance import provenance
from monolib.rfm import RFMConfig

logger = logging.getLogger(__name__)

ASSIGNMENTS = ("learned", "true")
METRICS = ("network", "identity")


@dataclass(frozen=True)
class GateSettings:
    """How inputs are grouped, and in which representation each group is fitted.

    n_gates: M; the paper's is K.  seed: of K-means++.
    assignment: "learned" gates, or the "true" clusters at training and test time (a diagnostic: M = K).
    metric: "network" is z = G_c^{1/2} x, with the mean profile of group c as q_c (Eqs. 13, 14); "identity" is z = x.
    "true" with "identity" is the oracle of A.2.  Raises UserError for another value.
    """

    n_gates: int
    seed: int
    assignment: str = "learned"
    metric: str = "network"

    def __post_init__(self) -> None:
        if self.n_gates < 1:
            raise UserError(f"n_gates={self.n_gates}: must be an integer ≥ 1")
        for name, allowed in (("assignment", ASSIGNMENTS), ("metric", METRICS)):
            if getattr(self, name) not in allowed:
                raise UserError(f"{name}={getattr(self, name)!r}: must be one of {', '.join(allowed)}")


def gated_cell(network: Cell, settings: GateSettings, config: RFMConfig) -> Cell:
    """Cell of the local fits behind the gates of `network`'s checkpoint, on the data that it was trained on.

    Raises UserError for a cell that is no ReLU network on the mixed-link law, or true clusters with M ≠ K.
    """
    if network.kind != "network" or "data" not in network.config:
        raise UserError(f"network={network.key}: must be a network cell on the mixed-link law")
    architecture = network.config["training"]["architecture"]
    if architecture != "relu":
        raise UserError(f"architecture={architecture!r}: gates are read off a ReLU network (A.3)")
    if settings.assignment == "true" and settings.n_gates != network.config["data"]["n_clusters"]:
        raise UserError(f"n_gates={settings.n_gates}: must be K={network.config['data']['n_clusters']}, true clusters")
    fit = {name: value for name, value in asdict(config).items() if name not in NOT_RESULTS}
    return Cell("gated", {"network": dict(network.config), "gates": asdict(settings), "fit": fit})


def source_cell(cell: Cell) -> Cell:
    """The network's cell of a gated cell."""
    return Cell("network", cell.config["network"])


def cell_data(cell: Cell) -> MixedLinkData:
    """Which data a gated cell, and its network, is fitted to."""
    return MixedLinkData(**cell.config["network"]["data"])


def gated_work(cell: Cell) -> float:
    """Kernel evaluations and multiplications of the local fits, up to a factor, for gates of equal size."""
    gates, n = cell.config["gates"]["n_gates"], cell_data(cell).n_train
    return float(gates * rfm_work(fit_config(cell), max(n // gates, 1)))


def compute_gated_cells(cells: Sequence[Cell], store: CellStore, device: str) -> None:
    """Compute and write the cells, one after the other; a network that is missing is trained and kept first.

    One thread throughout: K-means adds in an order that depends on their number.
    """
    for cell in cells:
        network = _network(source_cell(cell), store, device)
        started = time.perf_counter()
        _, train, test = cell_data(cell).draw()
        with threadpool_limits(1):
            gates = chosen_gates(network, train, GateSettings(**cell.config["gates"]))
            fits = fit_gated(
                train.x, train.y, gates, fit_config(cell, device), on_share=functools.partial(store.report_share, cell)
            )
            result, arrays = _outcome(cell, gates, fits, train, test)
        store.write(cell, CellRecord(result, arrays, provenance(device, time.perf_counter() - started)))


def _network(cell: Cell, store: CellStore, device: str) -> Network:
    """The kept checkpoint of the network's cell, trained now if need be.

    Locks are taken in one order, first a gated cell's, then its network's, so that no two runs wait in a circle.
    """
    record = store.read(cell)
    if record is None:
        if store.is_running(cell):
            logger.warning("cell %s is being computed by another run; waiting for it", cell.key)
        with store.lock(cell):
            if store.read(cell) is None:
                compute_network_cells([cell], store, device)
        record = store.read(cell)
    if record is None:
        raise UserError(f"cell {cell.key}: vanished from the cache while this run was using it; run again")
    return trained_network(cell, record)


def chosen_gates(network: Network, train: Sample, settings: GateSettings) -> Gates:
    """The gates of `settings`: learned from the training inputs, or the true clusters; with their metrics."""
    if settings.assignment == "true":
        gates = true_gates(network, train, settings.n_gates)
    else:
        gates = find_gates(network, train.x, settings.n_gates, settings.seed)
    if settings.metric == "identity":
        gates = replace(gates, metrics=np.broadcast_to(np.eye(train.x.shape[1]), gates.metrics.shape).copy())
    return gates


def true_gates(network: Network, train: Sample, n_clusters: int) -> Gates:
    """Gates of the true clusters: q_c is the mean profile over cluster c. Raises ValueError for an empty cluster."""
    counts = np.bincount(train.cluster, minlength=n_clusters)
    if counts.min() == 0:
        raise ValueError(f"cluster: {int(counts.argmin())} has no training points")
    active = active_by_two_means(mean_contributions(network, train.x), at_least=n_clusters)
    p = profiles(network, active, train.x)
    centroids = np.stack([p[train.cluster == c].mean(0) for c in range(n_clusters)])
    return Gates(network, active, centroids, gate_metrics(network, active, centroids), train.cluster)


def stored_gates(cell: Cell, record: CellRecord, network: Network) -> Gates:
    """The gates of a finished gated cell; `network` is the checkpoint of its network's cell."""
    names = ("active", "centroids", "metrics", "assignment")
    return Gates(network, **{name: record.arrays[name] for name in names})


def _outcome(
    cell: Cell, gates: Gates, fits: LocalFits, train: Sample, test: Sample
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Result and arrays of a cell: errors of every iteration, agreement with the true clusters, what the gates are.

    silent_test: test inputs without a profile.  Arrays: see `Gates`; `test_gate` (n_test,); `predictions`
    (iterations, n_test) float32; `learned_metrics` (gates, d, d): G_c^{1/2} M G_c^{1/2} of the last iteration, zero
    for an empty gate.
    """
    true = cell.config["gates"]["assignment"] == "true"
    test_gate = test.cluster if true else gates.assign(test.x)
    rounds = len(next(iter(fits.fits.values())).iterations)
    outputs = np.stack([fits.predict(test.x, test_gate, t) for t in range(rounds)])
    silent = ~profiles(gates.network, gates.active, test.x).any(1)
    result = {
        "test_mse": [float(np.mean(np.square(output - test.y))) for output in outputs],
        "reports": pooled_reports(fits),
        "network_test_mse": float(np.mean(np.square(gates.network.predict(test.x) - test.y))),
        "gate_ari": float(adjusted_rand_score(test.cluster, test_gate)),
        "gate_ari_train": float(adjusted_rand_score(train.cluster, gates.assignment)),
        "active": len(gates.active),
        "gates": len(gates.occupied),
        "smallest_gate": int(np.unique(gates.assignment, return_counts=True)[1].min()),
        "silent_test": int(silent.sum()),
    }
    arrays = {
        "active": gates.active,
        "centroids": gates.centroids,
        "metrics": gates.metrics,
        "assignment": gates.assignment.astype(np.int32),
        "test_gate": test_gate.astype(np.int32),
        "predictions": outputs.astype(np.float32),
        "learned_metrics": _learned_metrics(gates, fits),
    }
    return result, arrays


def _learned_metrics(gates: Gates, fits: LocalFits) -> np.ndarray:
    learned = np.zeros_like(gates.metrics)
    assert fits.maps is not None
    for c, fit in fits.fits.items():
        root = fits.maps[c]
        learned[c] = root @ fit.iterations[-1].metric.cpu().numpy() @ root
    return learned
