"""Cells of kind "kernel": one kernel method fitted to data of the mixed-link law, its errors, its metrics.

Methods: "global" (one RFM), "oracle" (one RFM per true cluster), "curve" (one EigenPro fit of the Laplace kernel with
the errors after every epoch).
"""

import functools
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from monolib.cells import Cell, CellRecord, CellStore
from monolib.eigenpro import EigenProConfig, solve_eigenpro
from monolib.errors import UserError
from monolib.kernels import kernel_product, mapped
from monolib.laws import ClusteredLaw, Sample
from monolib.local_predictors import LocalFits, fit_local
from monolib.mixed_link_data import MixedLinkData
from monolib.provenance import provenance
from monolib.random_streams import generator
from monolib.rfm import RFMConfig, bandwidth_of, fit_rfm, require_fit

NOT_RESULTS = ("device", "memory_gib")  # where and how, not what


def kernel_cell(method: str, data: MixedLinkData, config: RFMConfig) -> Cell:
    """Cell of one fit. Raises UserError for an unknown method."""
    if method not in _METHODS:
        raise UserError(f"method={method!r}: must be one of {', '.join(_METHODS)}")
    fit = {name: value for name, value in asdict(config).items() if name not in NOT_RESULTS}
    return Cell("kernel", {"method": method, "data": data.as_dict(), "fit": fit})


def cell_data(cell: Cell) -> MixedLinkData:
    """Which data a kernel cell is fitted to."""
    return MixedLinkData(**cell.config["data"])


def cell_law(cell: Cell) -> ClusteredLaw:
    """The mixed-link law of a kernel cell."""
    return cell_data(cell).law()


def fit_config(cell: Cell, device: str = "cpu") -> RFMConfig:
    """The fit's settings."""
    values = dict(cell.config["fit"])
    return RFMConfig(**(values | {"eigenpro": EigenProConfig(**values["eigenpro"]), "device": device}))


def stack_key(cell: Cell) -> str:
    """Kernel fits do not share a call: every cell has its own key."""
    return json.dumps(cell.config, sort_keys=True)


def fit_work(cell: Cell) -> float:
    """Kernel evaluations and multiplications of the cell, up to a factor."""
    config, n = fit_config(cell), cell_data(cell).n_train
    if cell.config["method"] == "oracle":
        clusters = cell_data(cell).n_clusters
        return clusters * rfm_work(config, max(n // clusters, 1))
    return rfm_work(config, n)


def rfm_work(config: RFMConfig, n: int) -> float:
    """Kernel evaluations and multiplications of one RFM of n points, up to a factor."""
    fits = config.n_updates + 1
    return fits * (n**3 / 120.0 + 30.0 * n**2 if config.uses_exact(n) else 10.0 * n**2 * config.eigenpro.max_epochs)


def compute_kernel_cells(cells: Sequence[Cell], store: CellStore, device: str) -> None:
    """Compute and write the cells, one after the other."""
    for cell in cells:
        started = time.perf_counter()
        _, train, test = cell_data(cell).draw()
        result, arrays = _METHODS[cell.config["method"]](
            fit_config(cell, device), train, test, functools.partial(store.report_share, cell)
        )
        store.write(cell, CellRecord(result, arrays, provenance(device, time.perf_counter() - started)))


Outcome = tuple[dict[str, Any], dict[str, np.ndarray]]
Share = Callable[[float], None]  # told the share of the cell's work that is done


def _global(config: RFMConfig, train: Sample, test: Sample, on_share: Share) -> Outcome:
    fit = fit_rfm(train.x, train.y, config, train.cluster, on_share=on_share)
    reports = [step.report.as_dict(with_seconds=False) for step in fit.iterations]
    metrics = np.stack([step.metric.cpu().numpy() for step in fit.iterations])
    return {"test_mse": fit.test_mse(test.x, test.y), "reports": _json(reports)}, {"metrics": metrics}


def _oracle(config: RFMConfig, train: Sample, test: Sample, on_share: Share) -> Outcome:
    fits = fit_local(train.x, train.y, train.cluster, config, on_share=on_share)
    outputs = [fits.predict(test.x, test.cluster, t) for t in range(config.n_updates + 1)]
    errors = [float(np.mean(np.square(output - test.y))) for output in outputs]
    metrics = [np.stack([step.metric.cpu().numpy() for step in fit.iterations]) for _, fit in sorted(fits.fits.items())]
    return {"test_mse": errors, "reports": pooled_reports(fits)}, {"metrics": np.stack(metrics)}


def pooled_reports(fits: LocalFits) -> list[dict[str, Any]]:
    """For each iteration what the local fits did: training MSE over all points, most steps, stop reasons, solvers."""
    local = list(fits.fits.values())
    counts = np.array([len(fit.x) for fit in local])
    pooled = []
    for t in range(len(local[0].iterations)):
        reports = [fit.iterations[t].report for fit in local]
        pooled.append(
            {
                "train_mse": float(np.average([report.train_mse for report in reports], weights=counts)),
                "steps": max(report.steps for report in reports),
                "stop_reason": ", ".join(sorted({report.stop_reason for report in reports})),
                "solver": ", ".join(sorted({report.solver for report in reports})),
            }
        )
    return pooled


def _curve(config: RFMConfig, train: Sample, test: Sample, on_share: Share) -> Outcome:
    """EigenPro on the Laplace kernel (M = I), with training and test MSE after every epoch."""
    keep = require_fit(len(train.x), train.x.shape[1], config)
    x, y, at = (torch.tensor(v, device=config.device) for v in (train.x, train.y, test.x))
    root, dtype = torch.eye(x.shape[1], dtype=torch.float64, device=x.device), getattr(torch, config.dtype)
    h = bandwidth_of(x, train.cluster, config).value
    u, z = (mapped(points, root, x.mean(0), h, dtype) for points in (x, at))
    errors: list[float] = []

    def note_test_error(epoch: int, alpha: torch.Tensor) -> None:
        errors.append(float(np.mean(np.square(kernel_product(z, u, alpha).double().cpu().numpy() - test.y))))
        on_share(epoch / config.eigenpro.max_epochs)

    result = solve_eigenpro(u, y, config.eigenpro, generator(config.seed, "eigenpro"), keep, on_epoch=note_test_error)
    epochs = [
        (e, full, error)
        for (e, _, full), error in zip(result.history, errors[len(errors) - result.epochs :], strict=True)
    ]
    facts = {name: getattr(result, name) for name in ("stop_reason", "batch", "eigenvectors", "restarts", "train_mse")}
    return {**facts, "bandwidth": h, "epochs": _json(epochs)}, {"alpha": result.coefficients.cpu().numpy()}


def _json(value: Any) -> Any:
    """Plain JSON values: nan becomes null."""
    if isinstance(value, dict):
        return {key: _json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_METHODS: dict[str, Callable[[RFMConfig, Sample, Sample, Share], Outcome]] = {
    "global": _global,
    "oracle": _oracle,
    "curve": _curve,
}
