# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Kernels and Recursive Feature Machines (A.2, A.3; the comparison of §3.2)
#
# **What MLPs are compared with.** A Laplace kernel with one metric for all of space, and the Recursive Feature Machine
# (RFM), which learns that metric from the gradients of its own predictor. With a single cluster the metric turns into
# the one direction that matters. With many clusters one metric has to serve every direction at once, and there is
# nothing left to gain: this page follows that, equation by equation.
#
# | symbol | here |
# |---|---|
# | $K$, $d$, $n$ | `law.n_clusters`, `law.dim`, `n_train` |
# | $\mu_c$, $v_c$, $g_c$, $\sigma$ | `law.centers`, `law.directions`, `law.links`, `law.noise_std` |
# | $M$, $M^{1/2}$, $h$ | `metric`, `metric_root(metric)`, `median_bandwidth` |
# | $u = M^{1/2}(x-\bar x)/h$, $K(u,u)$, $\alpha$ | `mapped`, `gram`, `solve_exact`, `solve_eigenpro` |
# | $\nabla f$, $\widehat G$ | `gradients`, `agop` |

# %% tags=["parameters"]
profile = "small"
clusters = [1, 2, 10, 50]
n_train = 5000
n_test = 4096
seeds = [0, 1]
n_updates = 3
ridge = 1e-06
exact_below = 11000
target_mse = 0.0004
max_epochs = 50
agop_points = 20000
bandwidth_points = 1000
curve_clusters = 10
curve_points = 12000
descent_epochs = 100
variation_agop_points = [200, 1000]
variation_bandwidth_points = [50]
variation_normalizations = ["max_entry", "none"]
variation_solvers = ["eigenpro"]
variation_subsamples = [500, 1000]
variation_dtypes = ["float64"]
device = "auto"
n_jobs = 0
stack = 1
results_folder = "results"
cache_folder = ".cache/cells"

# %% [markdown]
# The next cell checks the parameters and stops here, with one line per problem, if a name or a value is wrong.

# %%
from monolib.kernel_path.parameters import KernelsParameters
from monolib.parameter_files import notebook_parameters

parameters = notebook_parameters(KernelsParameters, globals())

# %%
import numpy as np
import pandas as pd
import torch
from IPython.display import Markdown, display

from monolib.agop import agop, gradients, updated_metric
from monolib.bandwidth import median_bandwidth
from monolib.cells import CellStore
from monolib.claims import format_claims
from monolib.devices import resolve_device
from monolib.exact_solver import solve_exact
from monolib.kernel_path import claims, plots, runs, tables
from monolib.kernels import gram, kernel_product, mapped, metric_root
from monolib.mixed_link_data import MixedLinkData
from monolib.project_paths import resolve
from monolib.results_folder import ResultsFolder
from monolib.sweep import run_cells

folder = resolve(parameters.results_folder) / parameters.profile / "kernels"
results = ResultsFolder(folder, parameters.identity())
store = CellStore(resolve(parameters.cache_folder))

# %% [markdown]
# ## The data (A.2, Eqs. 3 to 6)
#
# Ten coordinates tell the cluster, ten others predict. Centers $s_c$ are well-separated unit vectors (farthest-point
# selection), $\rho_K$ is their largest inner product, and
#
# $$x = (s_c + \sigma_K z,\ z'),\quad \sigma_K=\frac{1-\rho_K}{8},\qquad y=g_c(\langle z',\tilde v_c\rangle)+\varepsilon,
# \quad \varepsilon\sim\mathcal N(0, 0.02^2),$$
#
# with $\tilde v_c$ uniform on the sphere and $g_c$ drawn from $(t^2-1)/\sqrt2$, $\sin t$, $\tanh t$. For $K=1$ the center
# is 0.

# %%
data = {k: MixedLinkData(k, parameters.n_train, parameters.n_test, parameters.seeds[0]) for k in parameters.clusters}
laws = {k: own.law() for k, own in data.items()}
pd.DataFrame(
    {
        "σ_K": {k: law.input_std[0] for k, law in laws.items()},
        "ρ_K": {k: 1 - 8 * law.input_std[0] for k, law in laws.items()},
        "links": {k: ", ".join(sorted(set(law.links))) for k, law in laws.items()},
    }
).rename_axis("K")

# %% [markdown]
# ## A metric kernel (Eq. 7)
#
# $$k(x,z)=\exp\!\left(-\|M^{1/2}(x-z)\|/h\right)$$
#
# The distance is not squared: the kernel has a cusp at $x=z$. $M=I$ is the Laplace kernel. All points are mapped once,
# $u=M^{1/2}(x-\bar x)/h$; then $k=e^{-\|u-u'\|}$. The bandwidth $h$ is the median distance within a cluster, then the
# median over clusters. A small example, with the smallest $K$ of this page:

# %%
law, train, _ = data[parameters.clusters[0]].draw()
x, y, cluster = torch.from_numpy(train.x[:1000]), torch.from_numpy(train.y[:1000]), train.cluster[:1000]
root = metric_root(torch.eye(law.dim))
h = median_bandwidth(x @ root, cluster, np.random.default_rng(0)).value
u = mapped(x, root, x.mean(0), h, torch.float64)
K = gram(u)
alpha = solve_exact(K, y, ridge=1e-6)
pd.Series(
    {
        "bandwidth h": h,
        "largest |K_ii − 1|": float((K.diagonal() - 1).abs().max()),
        "smallest eigenvalue of K": float(torch.linalg.eigvalsh(K)[0]),
        "product in tiles against the Gram matrix": float((kernel_product(u, None, y) - K @ y).abs().max()),
        "residual of (K + 1e-6 I)α = y": alpha.residual,
    },
    name="value",
).to_frame()

# %% [markdown]
# ## The average gradient outer product
#
# $$\nabla f(x) = -\frac1h\sum_j\alpha_j\,\frac{k(x,x_j)}{r_j}\,M(x-x_j),\quad r_j = \|M^{1/2}(x-x_j)\|/h,\qquad
# \widehat G=\frac1m\sum_i\nabla f(x_i)\nabla f(x_i)^{\!\top}.$$
#
# In three lines: with $W_{ij}=\alpha_jk_{ij}/r_{ij}$ (0 for a point with itself, where the kernel has its cusp) the sum is
# $u_i\sum_jW_{ij}-\sum_jW_{ij}u_j$, and $\widehat G$ is the mean outer product. The same by `agop`, and the gradient
# against differences of $f$:

# %%
r = torch.cdist(u, u, compute_mode="donot_use_mm_for_euclid_dist")
W = torch.where(r > 0, alpha.coefficients * K / r, 0.0)
g = (u * W.sum(1, keepdim=True) - W @ u) @ root / h
G = agop(u, u, alpha.coefficients, root, h)
step = 1e-5 * torch.eye(law.dim, dtype=torch.float64)
at = torch.from_numpy(law.sample(1, np.random.default_rng(1)).x)
ahead, behind = (gram(mapped(p, root, x.mean(0), h, torch.float64), u) for p in (at + step, at - step))
differences = (ahead - behind) @ alpha.coefficients / 2e-5
by_hand = gradients(mapped(at, root, x.mean(0), h, torch.float64), u, alpha.coefficients, root, h)[0]
pd.Series(
    {
        "three lines against agop": float((g.T @ g / len(g) - G).norm() / G.norm()),
        "gradient against differences": float((by_hand - differences).norm() / differences.norm()),
    },
    name="relative deviation",
).to_frame()

# %% [markdown]
# ## RFM: fit, AGOP, new metric, new bandwidth, fit again (A.2)
#
# $M_{t+1}$ is $\widehat G_t$, scaled to trace $d$ (which changes nothing, because $h$ is a median of the transformed data).
# Three updates, four fits. Below 11,000 points each fit is an exact solve with ridge $10^{-6}$, above by EigenPro.
# One update of the example:

# %%
M1 = updated_metric(G)
eigenvalues, vectors = torch.linalg.eigh(M1)
pd.Series(
    {
        "trace": float(M1.trace()),
        "largest eigenvalue over trace": float(eigenvalues[-1] / M1.trace()),
        "|cos| of the top eigenvector with the nearest v": float(np.abs(law.directions @ vectors[:, -1].numpy()).max()),
    },
    name="value",
).to_frame()

# %% [markdown]
# The fits of this page: finished ones are read from the cache, missing ones are computed now, with a progress bar.

# %%
planned = runs.planned_fits(parameters)
records = run_cells([fit.cell for fit in planned], store, resolve_device(parameters.device), parameters.n_jobs)
errors = tables.errors_table(planned, records)
summary = tables.summary_table(errors)
metrics = tables.metrics_table(planned, records)
entries = tables.entries_table(planned, records, parameters.seeds[0])
first = [
    {
        "K": fit.n_clusters,
        **{name: report[name] for name in ("solver", "stop_reason", "steps", "train_mse", "residual")},
    }
    | {name: report[name] for name in ("bandwidth", "jitter", "metric")}
    for fit, record in zip(planned, records, strict=True)
    if (fit.part, fit.method, fit.seed) == ("comparison", "global", parameters.seeds[0])
    for report in record.result["reports"]
]
pd.DataFrame(first)

# %% [markdown]
# ## RFM recovers $v$ for $K=1$, and has nothing to recover for many clusters
#
# The metric at each update, fewest and most clusters of this page, beside the law's own $\sum_c v_cv_c^\top$:

# %%
shown = sorted({parameters.clusters[0], parameters.clusters[-1]})
directions = {k: laws[k].directions for k in shown}
entries = entries[entries["n_clusters"].isin(shown)]
results.show_figure("metrics", plots.draw_metrics(entries, shown, directions))

# %% [markdown]
# With one cluster, $M$ becomes $vv^\top$: one dimension is left, and the problem is a one-dimensional one. With many, the
# average over clusters mixes their directions, so that no single $v_c$ stands out among the predictive coordinates, and
# at $K=50$ most of the weight goes to the coordinates that tell the clusters apart: the label changes most on the way
# from one cluster to the next.

# %%
results.show_figure("learned", plots.draw_learned(metrics))

# %% [markdown]
# ## What that costs
#
# Global and oracle RFM by iteration. The oracle is told the cluster of each point, in training and at test time, and
# fits one RFM per cluster; for $K=1$ the two are one.

# %%
results.show_figure("errors", plots.draw_errors(errors, law.noise_std))

# %% [markdown]
# `rfm_envelope` is what the paper displays for the global RFM: the smallest **test** MSE over the iterations, seed by
# seed. It selects on the test set, so it is optimistic; `rfm` is the last iteration.

# %%
summary.round(5)

# %% [markdown]
# ## EigenPro (A.2): 11,000 points and more
#
# Gradient descent on $\tfrac1n\|K\alpha-y\|^2$ moves fast along the large eigenvalues of $K$ and hardly at all along the
# small ones. EigenPro makes the $q$ largest equal, with eigenvectors $V$ of a subsample $S$ of $s$ points
# ($K_S/s=V\Lambda V^\top$): for a batch $b$ with residuals $g$,
#
# $$\alpha_b \mathrel{-}= \eta g,\qquad \alpha_S \mathrel{+}= \eta\,\tilde V D\tilde V^\top K(S,b)\,g,\qquad
# \tilde V=V/\sqrt s,\quad D_i=\frac{1-(\lambda_q/\lambda_i)^{0.95}}{\lambda_i}.$$
#
# It stops at a full training MSE of $4\cdot10^{-4}$, the label noise, without a ridge. Plain gradient descent takes its
# largest stable step on all points at once. One epoch of either evaluates the kernel matrix once.

# %%
curves = tables.curves_table(planned, records)
results.show_figure("curves", plots.draw_curves(curves, parameters.target_mse))

# %%
curves.groupby("method", sort=False).last()

# %% [markdown]
# The early-stopped fit and the exact one with ridge $10^{-6}$ are different predictors: at the boundary of 11,000 points
# the method changes, and with it the test MSE, by the few percent that this table shows.

# %% [markdown]
# ## What the paper leaves open on this path, and how much it matters
#
# * *Normalised* AGOP: any scaling gives the same predictor as long as $h$ is a median of the transformed points.
# * Which points the AGOP averages over ("at most 20,000"): a uniform sample here.
# * How many pairs the within-cluster median sees: up to 1,000 points of each cluster here. A cluster with a single point
#   has no pair and does not count.
# * EigenPro's version, subsample, number of eigenvectors, epoch limit, precision: EigenPro 2; 2,000 points (4,000 from
#   100,000 on); as many eigenvectors as make the critical batch equal to the subsample; 50 epochs; float32.
#
# One at a time, everything else equal:

# %%
variations = tables.variations_table(planned, records)
display(variations if len(variations) else Markdown("*No variations in this profile.*"))

# %% [markdown]
# ## Verdicts

# %%
verdicts = claims.kernel_claims(summary, metrics, curves, parameters)
results.write_table("errors", errors)
results.write_table("summary", summary)
results.write_table("metrics", metrics)
results.write_table("entries", entries)
results.write_table("curves", curves)
results.write_table("variations", variations)
results.write_claims(verdicts)
results.write_provenance({fit.cell.key: record.provenance for fit, record in zip(planned, records, strict=True)})
Markdown(format_claims([(parameters.profile, claim) for claim in verdicts], "markdown"))
