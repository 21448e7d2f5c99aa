"""Independent local predictors: one RFM for each group of points (a true cluster, A.2, or a learned gate, A.3)."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from tqdm import tqdm

from monolib.errors import UserError
from monolib.gates import Gates
from monolib.kernels import metric_root
from monolib.rfm import RFMConfig, RFMFit, fit_rfm


@dataclass(frozen=True, eq=False)
class LocalFits:
    """`fits` by the number of the group; `maps` the representation z = x `maps[c]` of each group, (d, d), if any."""

    fits: dict[int, RFMFit]
    maps: Mapping[int, np.ndarray] | None = None

    def predict(self, x: np.ndarray, group: np.ndarray, iteration: int = -1) -> np.ndarray:
        """Prediction for x (n, d) by the predictor of each point's `group` (n,), float64.

        Raises UserError for a group without predictor.
        """
        unknown = sorted(set(np.unique(group).tolist()) - set(self.fits))
        if unknown:
            raise UserError(f"cluster={unknown[0]}: no predictor was fitted for it; known are {sorted(self.fits)}")
        out = np.empty(len(x))
        for name in np.unique(group).tolist():
            members = np.flatnonzero(group == name)
            own = x[members] if self.maps is None else x[members] @ self.maps[name]
            out[members] = self.fits[name].predict(own, iteration)
        return out


def fit_local(
    x: np.ndarray,
    y: np.ndarray,
    group: np.ndarray,
    config: RFMConfig,
    maps: Mapping[int, np.ndarray] | None = None,
    progress: bool = False,
    on_share: Callable[[float], None] | None = None,
) -> LocalFits:
    """Fit one RFM for each number in `group` (n,), with its own bandwidth; `maps` as in `LocalFits`.

    on_share: called with the share of the groups done.
    A group of one point has no distance and no gradient: h = 1, and its metric stays the identity.
    Raises UserError when `group` has another length than x.
    """
    if len(group) != len(x):
        raise UserError(f"cluster: has {len(group)} entries, must have one for each of the {len(x)} points")
    names = np.unique(group).tolist()
    fits = {}
    for name in tqdm(names, desc="local predictors", unit="group", file=sys.stderr, disable=not progress):
        members = np.flatnonzero(group == name)
        own = x[members] if maps is None else x[members] @ maps[name]
        fits[name] = fit_rfm(own, y[members], replace(config, seed=config.seed + int(name)))
        if on_share is not None:
            on_share(len(fits) / len(names))
    return LocalFits(fits, maps)


def fit_gated(
    x: np.ndarray,
    y: np.ndarray,
    gates: Gates,
    config: RFMConfig,
    progress: bool = False,
    on_share: Callable[[float], None] | None = None,
) -> LocalFits:
    """Local predictors in the gates' representations z_c(x) = G_c^{1/2} x (Eq. 14); empty gates get none.

    on_share: as in `fit_local`.
    """
    roots = {int(c): metric_root(torch.from_numpy(gates.metrics[c])).numpy() for c in gates.occupied}
    return fit_local(x, y, gates.assignment, config, roots, progress, on_share)
