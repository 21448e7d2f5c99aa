"""The kernel methods as scikit-learn estimators: RFMRegressor, PerClusterRegressor, MLPGatedRegressor."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from monolib.devices import resolve_device
from monolib.eigenpro import EigenProConfig
from monolib.errors import UserError
from monolib.gates import find_gates
from monolib.local_predictors import LocalFits, fit_gated, fit_local
from monolib.networks import Network, NetworkShape
from monolib.rfm import RFMConfig, fit_rfm
from monolib.stopping import StopRule
from monolib.training import train_networks
from monolib.training_config import TrainingConfig
from monolib.training_run import TrainingData


class _KernelRegressor(RegressorMixin, BaseEstimator):
    """What the three share: checked input, and the settings of the kernel fits.

    n_updates, ridge, solver, bandwidth, agop_points, normalization, dtype, memory_gib: see `rfm.RFMConfig`.
    target_mse, max_epochs, subsample, batch_size: see `eigenpro.EigenProConfig`.
    random_state: seed or RandomState.  device: auto, cpu or cuda.  progress: bars on stderr.
    """

    def __init__(
        self,
        *,
        n_updates: int = 3,
        ridge: float = 1e-6,
        solver: str = "auto",
        bandwidth: float | None = None,
        agop_points: int = 20_000,
        normalization: str = "trace",
        target_mse: float | None = 4e-4,
        max_epochs: int = 50,
        subsample: int | None = None,
        batch_size: int | None = None,
        dtype: str = "float32",
        device: str = "cpu",
        memory_gib: float | None = None,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        self.n_updates = n_updates
        self.ridge = ridge
        self.solver = solver
        self.bandwidth = bandwidth
        self.agop_points = agop_points
        self.normalization = normalization
        self.target_mse = target_mse
        self.max_epochs = max_epochs
        self.subsample = subsample
        self.batch_size = batch_size
        self.dtype = dtype
        self.device = device
        self.memory_gib = memory_gib
        self.random_state = random_state
        self.progress = progress

    def _config(self) -> RFMConfig:
        solver = EigenProConfig(self.target_mse, self.max_epochs, self.subsample, self.batch_size)
        return RFMConfig(
            n_updates=self.n_updates,
            ridge=self.ridge,
            solver=self.solver,
            bandwidth=self.bandwidth,
            agop_points=self.agop_points,
            normalization=self.normalization,
            eigenpro=solver,
            dtype=self.dtype,
            device=resolve_device(self.device),
            memory_gib=self.memory_gib,
            seed=self._seed(),
        )

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _training_data(self, X: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        x, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        return x, np.asarray(labels, dtype=np.float64)

    def _inputs(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))


def _cluster_numbers(cluster: ArrayLike | None, n: int) -> np.ndarray:
    """Cluster numbers (n,); all 0 for None. Raises UserError for another length or for what are no integers."""
    numbers = np.zeros(n, dtype=int) if cluster is None else np.asarray(cluster)
    if numbers.shape != (n,) or not np.issubdtype(numbers.dtype, np.integer):
        raise UserError(f"cluster: must be {n} integers, is {numbers.dtype} of shape {numbers.shape}")
    if len(numbers) and numbers.min() < 0:
        raise UserError(f"cluster={numbers.min()}: must be integers ≥ 0")
    return numbers


class RFMRegressor(_KernelRegressor):
    """Recursive Feature Machine with the Laplace kernel (A.2); with n_updates=0 the Laplace kernel itself.

    Fitted attributes: `fit_` (all iterations, `rfm.RFMFit`), `reports_` (one `rfm.FitReport` per iteration), `metric_`
    M and `bandwidth_` h of the last one.  Parameters: see the base class.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, cluster: ArrayLike | None = None) -> Self:
        """Fit to X (n, d), y (n,). cluster: cluster numbers (n,) for the bandwidth alone (A.2); None: one cluster."""
        x, labels = self._training_data(X, y)
        numbers = None if cluster is None else _cluster_numbers(cluster, len(x))
        self.fit_ = fit_rfm(x, labels, self._config(), numbers, self.progress)
        self.reports_ = [step.report for step in self.fit_.iterations]
        self.metric_ = self.fit_.iterations[-1].metric.cpu().numpy()
        self.bandwidth_ = self.fit_.iterations[-1].bandwidth
        return self

    def predict(self, X: ArrayLike, iteration: int = -1) -> np.ndarray:
        """Predictions (n,) of an iteration, by default the last."""
        x = self._inputs(X)
        return self.fit_.predict(x, iteration)


class PerClusterRegressor(_KernelRegressor):
    """The oracle: one independent RFM per true cluster (A.2). It is told the cluster, in training and at test time.

    Fitted attributes: `fits_` (`local_predictors.LocalFits`), `clusters_` the cluster numbers seen in training.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, cluster: ArrayLike | None = None) -> Self:
        """Fit to X (n, d), y (n,), with cluster numbers `cluster` (n,); None: a single cluster 0."""
        x, labels = self._training_data(X, y)
        numbers = _cluster_numbers(cluster, len(x))
        self.fits_ = fit_local(x, labels, numbers, self._config(), progress=self.progress)
        self.clusters_ = np.unique(numbers)
        return self

    def predict(self, X: ArrayLike, cluster: ArrayLike | None = None, iteration: int = -1) -> np.ndarray:
        """Predictions (n,); `cluster` (n,) may only be left out when all training points were of cluster 0.

        Raises UserError when it is left out otherwise, or names a cluster without training points.
        """
        x = self._inputs(X)
        if cluster is None and self.clusters_.tolist() != [0]:
            raise UserError("cluster=None: the predictors differ by cluster, say which one each point belongs to")
        return self.fits_.predict(x, _cluster_numbers(cluster, len(x)), iteration)


class MLPGatedRegressor(_KernelRegressor):
    """Local RFMs behind gates that are read off a trained ReLU network (A.3).

    n_gates: M = K.  network: a trained `networks.Network`; None trains one in `fit` with the settings that follow.
    width, network_batch_size, learning_rate, final_rate_fraction, min_steps, max_steps: of that network; it stops at a
    training MSE ≤ `network_target_mse` or on a plateau, and keeps the checkpoint with the smallest training MSE (A.2).
    Fitted attributes: `network_`, `gates_` (`gates.Gates`), `fits_` (`local_predictors.LocalFits`).
    """

    def __init__(
        self,
        *,
        n_gates: int = 10,
        network: Network | None = None,
        width: int = 4096,
        network_batch_size: int = 4096,
        learning_rate: float = 1e-2,
        final_rate_fraction: float = 1e-2,
        min_steps: int = 20_000,
        max_steps: int = 200_000,
        evaluate_every: int = 500,
        network_target_mse: float | None = 4e-4,
        n_updates: int = 3,
        ridge: float = 1e-6,
        solver: str = "auto",
        bandwidth: float | None = None,
        agop_points: int = 20_000,
        normalization: str = "trace",
        target_mse: float | None = 4e-4,
        max_epochs: int = 50,
        subsample: int | None = None,
        batch_size: int | None = None,
        dtype: str = "float32",
        device: str = "cpu",
        memory_gib: float | None = None,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        super().__init__(
            n_updates=n_updates,
            ridge=ridge,
            solver=solver,
            bandwidth=bandwidth,
            agop_points=agop_points,
            normalization=normalization,
            target_mse=target_mse,
            max_epochs=max_epochs,
            subsample=subsample,
            batch_size=batch_size,
            dtype=dtype,
            device=device,
            memory_gib=memory_gib,
            random_state=random_state,
            progress=progress,
        )
        self.n_gates = n_gates
        self.network = network
        self.width = width
        self.network_batch_size = network_batch_size
        self.learning_rate = learning_rate
        self.final_rate_fraction = final_rate_fraction
        self.min_steps = min_steps
        self.max_steps = max_steps
        self.evaluate_every = evaluate_every
        self.network_target_mse = network_target_mse

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to X (n, d), y (n,): train the network unless one is given, find the gates, fit the local predictors."""
        x, labels = self._training_data(X, y)
        config = self._config()
        self.network_ = self.network if self.network is not None else self._trained(x, labels, config)
        self.gates_ = find_gates(self.network_, x, self.n_gates, config.seed)
        self.fits_: LocalFits = fit_gated(x, labels, self.gates_, config, self.progress)
        return self

    def _trained(self, x: np.ndarray, y: np.ndarray, config: RFMConfig) -> Network:
        training = TrainingConfig(
            architecture="relu",
            width=self.width,
            batch_size=self.network_batch_size,
            learning_rate=self.learning_rate,
            max_steps=self.max_steps,
            seed=config.seed,
            final_rate_fraction=self.final_rate_fraction,
            evaluate_every=min(self.evaluate_every, self.max_steps),
            select="training",
            stop=StopRule(min_steps=self.min_steps, target_mse=self.network_target_mse, patience=60),
        )
        result = train_networks([training], [TrainingData(x, y)], config.device)[0]
        return Network.from_flat(NetworkShape("relu", x.shape[1], self.width), result.best)

    def predict(self, X: ArrayLike, iteration: int = -1) -> np.ndarray:
        """Predictions (n,) of the local predictors' iteration, by default the last; 0 is the gated Laplace kernel."""
        x = self._inputs(X)
        return self.fits_.predict(x, self.gates_.assign(x), iteration)
