# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # MLPs jointly learn clusters and local rules (§3.2, A.2; Figures 2 and 6)
#
# **What the paper claims.** The label depends on one direction per cluster, and neither the clusters nor the directions
# are known. A kernel with one metric for all of space, even a learned one, needs more and more data as clusters are
# added. A plain network with one hidden layer does not: its neurons specialise to clusters, and its test error comes close
# to that of oracles which are told the cluster of every point. Gated networks (ReGLU, SwiGLU) need the least data.
#
# | symbol | here |
# |---|---|
# | $K$, $n$, $r$ | `n_clusters`, `n_train`, `seed` |
# | $\mu_c$, $v_c$, $g_c$, $\sigma_K$ | `law.centers`, `law.directions`, `law.links`, `law.input_std` |
# | $P(c\mid x)$, $E[y\mid x]$ | `cluster_posterior`, `bayes_prediction` |
# | test error curves | `results/<profile>/fig2/curves.csv` |

# %% tags=["parameters"]
profile = "small"
clusters = [1, 2, 10, 50]
sizes = [2000, 5000, 10000, 20000]
n_test = 4096
seeds = [0, 1, 2]
architectures = ["relu", "gelu", "reglu", "swiglu"]
width = 1024
batch_size = 512
learning_rate_relu = 0.01
learning_rate_gelu = 0.03
learning_rate_reglu = 0.003
learning_rate_swiglu = 0.01
final_rate_fraction = 0.01
min_steps = 4000
max_steps = 16000
evaluate_every = 500
target_mse = 0.0004
patience = 60
min_improvement = 0.0005
start_scale = 1.0
readout_ratio = 1.0
readout_start = "signs"
rate_unit = "weights"
n_updates = 3
ridge = 1e-06
exact_below = 11000
max_epochs = 50
agop_points = 20000
bandwidth_points = 1000
page_clusters = 10
page_size = 20000
page_seed = 0
variation_architectures = ["relu", "reglu"]
variations = [
    {"start_scale": 0.3, "readout_ratio": 1.0, "rate_unit": "weights", "max_steps": 16000},
    {"start_scale": 1.0, "readout_ratio": 1.0, "rate_unit": "width_aware", "max_steps": 16000},
    {"start_scale": 1.0, "readout_ratio": 1.0, "rate_unit": "weights", "max_steps": 64000},
]
overlay_profile = "paper"
only_finished = False
device = "auto"
n_jobs = 0
stack = 1
results_folder = "results"
cache_folder = ".cache/cells"

# %% [markdown]
# The next cell checks the parameters and stops here, with one line per problem, if a name or a value is wrong.

# %%
from monolib.fig2.parameters import Fig2Parameters
from monolib.parameter_files import notebook_parameters

parameters = notebook_parameters(Fig2Parameters, globals())

# %%
import numpy as np
import pandas as pd
from IPython.display import Markdown, display

from monolib.bayes import bayes_prediction, cluster_posterior
from monolib.cells import CellStore
from monolib.center_placement import largest_similarity
from monolib.claims import format_claims
from monolib.fig2 import claims, one_cell, runs, tables
from monolib.fig2.paper import size_differences
from monolib.mixed_link_data import MixedLinkData
from monolib.network_cells import trained_network
from monolib.project_paths import resolve
from monolib.results_folder import ResultsFolder
from monolib.sample_size.finished import available_runs
from monolib.sample_size.overlay import overlay_statistics
from monolib.sample_size.plots import draw_sample_size_curves
from monolib.sample_size.tables import curves_table, seed_statistics

folder = resolve(parameters.results_folder) / parameters.profile / "fig2"
results = ResultsFolder(folder, parameters.identity())
store = CellStore(resolve(parameters.cache_folder))

# %% [markdown]
# How this run differs from the paper's size:

# %%
size_differences(parameters)

# %% [markdown]
# ## The data (A.2, Eqs. 3 to 6)
#
# $$x = (s_c + \sigma_K z,\ z'),\quad \sigma_K=\frac{1-\rho_K}{2\gamma},\ \gamma=4,\qquad
# y=g_c(\langle z',\tilde v_c\rangle)+\varepsilon,\quad \varepsilon\sim\mathcal N(0, 0.02^2).$$
#
# The centers $s_c$ are unit vectors in ten routing coordinates, far from each other; $\rho_K$ is their largest inner
# product. Ten other coordinates predict, along $\tilde v_c$, uniform on the sphere. The link $g_c$ is drawn from
# $(t^2-1)/\sqrt2$, $\sin t$, $\tanh t$. Centers and directions belong to $K$; links, points, noise and the networks'
# starts to the seed. The training sets are nested: prefixes of one pool of 200,000 points in which clusters take turns.

# %%
data = {k: MixedLinkData(k, max(parameters.sizes), parameters.n_test, parameters.seeds[0]) for k in parameters.clusters}
draws = {k: own.draw() for k, own in data.items()}
rho = {k: largest_similarity(law.centers[:, :10]) for k, (law, _, _) in draws.items()}
counts = {k: np.bincount(train.cluster[: min(parameters.sizes)]) for k, (_, train, _) in draws.items()}
pd.DataFrame(
    {
        "ρ_K": rho,
        "σ_K": {k: law.input_std[0] for k, (law, _, _) in draws.items()},
        "(1 − ρ_K)/8": {k: (1 - value) / 8 for k, value in rho.items()},
        "smallest, largest cluster at the smallest n": {k: f"{c.min()}, {c.max()}" for k, c in counts.items()},
        "links h₂, sin, tanh": {
            k: ", ".join(str(law.links.count(g)) for g in ("hermite2", "sin", "tanh"))
            for k, (law, _, _) in draws.items()
        },
    }
).rename_axis("K")

# %% [markdown]
# ## The Bayes predictor (A.2)
#
# $$E[y\mid x]=\sum_c P(c\mid x)\,g_c(\langle x,v_c\rangle),\qquad
# P(c\mid x)\propto e^{-\|x_{\rm routing}-s_c\|^2/2\sigma_K^2}.$$
#
# Its error exceeds the label noise $\sigma^2=4\cdot10^{-4}$ only where clusters overlap. Over a sample of 200,000:

# %%
sample = {k: law.sample(200_000, np.random.default_rng(0)) for k, (law, _, _) in draws.items()}
bayes = {k: bayes_prediction(draws[k].law, own.x) for k, own in sample.items()}
nearest = {k: cluster_posterior(draws[k].law, own.x).argmax(1) for k, own in sample.items()}
pd.DataFrame(
    {
        "MSE": {k: np.mean(np.square(bayes[k] - own.y)) for k, own in sample.items()},
        "MSE / σ²": {
            k: np.mean(np.square(bayes[k] - own.y)) / draws[k].law.noise_std ** 2 for k, own in sample.items()
        },
        "points nearer to another center": {k: np.mean(nearest[k] != own.cluster) for k, own in sample.items()},
    }
).rename_axis("K")

# %% [markdown]
# ## The grid: every method on the same points
#
# Networks: Adam, cosine decay, no weight decay. After the minimum number of steps a run stops at a training MSE of
# $4\cdot10^{-4}$, or after 60 evaluations in a row without a relative improvement of $5\cdot10^{-4}$; the checkpoint with
# the smallest **full** training MSE is kept. Kernels: `02_kernels_and_rfm`. Finished cells come from the cache, missing
# ones are computed now, with a progress bar.

# %%
grid, records = available_runs(runs.grid_runs(parameters), store, parameters)
curves = curves_table(grid, records, parameters.n_test)
print(f"{len(grid)} of {len(runs.grid_runs(parameters))} cells")
tables.endings_table(curves)

# %% [markdown]
# ## Figure 2
#
# Test MSE against the number of training points, mean over seeds, one standard deviation shaded. The paper displays for
# the global RFM the smallest **test** MSE of its four iterations, which no one could select; the last iteration is drawn
# beside it. The oracles (dashed) are told the cluster of every point. Large open markers: networks of the paper's width
# and number of steps, where they have been run (`overlay_profile`).

# %%
statistics = seed_statistics(curves)
overlay = overlay_statistics(parameters.results_folder, parameters.overlay_profile, "fig2")
label = "paper's size, where run" if len(overlay) else ""
results.show_figure("fig2", draw_sample_size_curves(statistics, tables.FIG2_METHODS, overlay, label))

# %% [markdown]
# How many seeds each mean is over, at the largest $n$ (they differ where only a part of the grid was run):

# %%
last = statistics[statistics["n_train"] == statistics["n_train"].max()]
last.pivot(index="n_clusters", columns="method", values="seeds")

# %% [markdown]
# The envelope and the last iteration of the global RFM, side by side (mean over seeds):

# %%
tables.envelope_table(curves)

# %% [markdown]
# ## Figure 6: the four architectures

# %%
results.show_figure("fig6", draw_sample_size_curves(statistics, tables.FIG6_METHODS, overlay, label))

# %%
means = statistics.pivot(index=["n_clusters", "n_train"], columns="method", values="mean")
means.reindex(columns=[*tables.NETWORKS, "laplace", "rfm_envelope", "oracle_laplace", "oracle_rfm", "bayes"])

# %% [markdown]
# ## Inside one cell
#
# Pick K, n and a seed with `page_clusters`, `page_size`, `page_seed`. For each active neuron of the first network: how
# much it contributes to the output within each true cluster, $B_{cj}=\mathrm{mean}_{x\in c}|a_jh_j(x)|$. A network that
# had learned one global representation would fill the picture; specialised neurons make it block-diagonal.

# %%
where = (parameters.page_clusters, parameters.page_size, parameters.page_seed)
page = MixedLinkData(where[0], where[1], parameters.n_test, where[2])
law, _, test = page.draw()
networks = {
    run.method: trained_network(run.cell, record)
    for run, record in zip(grid, records, strict=True)
    if run.method in tables.NETWORKS and (run.n_clusters, run.n_train, run.seed) == where
}
source = next(iter(networks), None)
if source is None:
    print("no network of this K, n and seed is finished")
else:
    contributions = one_cell.cluster_contributions(networks[source], test, law.n_clusters)
    inside = one_cell.clusters_table(law, networks, test, source)
    title = f"{source}, K = {where[0]}, n = {where[1]}, seed {where[2]}"
    results.show_figure("one_cell", one_cell.draw_one_cell(contributions, inside, title))

# %% [markdown]
# `neurons` prefer the cluster; `cosine` is how well they are aligned with its direction, in the predictive coordinates.

# %%
inside.round(4) if source else None

# %% [markdown]
# ## What the paper leaves open, and how much it matters
#
# * The parameterisation is not stated. Here: $f=\sum_ja_j\phi(w_j\cdot x+b_j)+c$, weights of size $m^{-1/2}$ ($m^{-1/3}$
#   when gated) at the start, and ordinary Adam at the stated rates.
# * The length of the cosine decay is not stated either. Here it ends at the largest number of steps, so that a run that
#   reaches its target early stops at a high rate.
# * A plateau could be one of the loss on batches; here it is the full training MSE. Batches reshuffle every epoch and a
#   partial batch is dropped.
#
# The same cell with other choices, one network each:

# %%
varied, varied_records = available_runs(runs.variation_runs(parameters), store, parameters, needed=False)
variations = tables.variations_table(varied, varied_records)
display(variations if len(variations) else Markdown("*No variations in this profile.*"))

# %% [markdown]
# ## Verdicts
#
# All comparisons are means over seeds of $\ln(\mathrm{MSE}_1/\mathrm{MSE}_2)$, with standard errors: the data of a seed
# are the same for all methods. *Reproduced* needs every comparison on the claimed side and more than two standard errors
# from zero.

# %%
verdicts = claims.fig2_claims(curves, parameters)
results.write_table("curves", curves)
results.write_table("variations", variations)
if source:
    results.write_table("one_cell", inside)
results.write_claims(verdicts)
pairs = [*zip(grid, records, strict=True), *zip(varied, varied_records, strict=True)]
results.write_provenance({run.cell.key: record.provenance for run, record in pairs})
Markdown(format_claims([(parameters.profile, claim) for claim in verdicts], "markdown"))
