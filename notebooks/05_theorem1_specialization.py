# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Theorem 1: randomly initialised neurons specialise (§4.1, B.1)
#
# **What the paper proves.** Data are $K$ Gaussian clusters at $\mu_c$, $\|\mu_c\|=R$, and in cluster $c$ the label is a
# cubic of one direction: $x=\mu_c+z$, $y=h_3(v_c^\top z)$, $h_3(t)=(t^3-3t)/\sqrt6$, with $\mu_c/R$ and $v_c$
# orthonormal, $d=2K$. A ReLU network that starts small, $a_j=0$, $w_j=\varepsilon\omega_j^0$, follows the gradient flow
# of the population loss. Then every neuron turns to the direction $\pm v_J$ of one cluster, up to $O(1/R)$; the
# clusters $J$ are independent and uniform, so that $m\ge K\log(K/\eta)$ neurons cover all of them.
#
# This page recomputes every lemma of the proof that can be computed. Each has rows in the table at the end.
#
# | symbol | here |
# |---|---|
# | $K$, $R$, $m$, $\varepsilon$ | `n_clusters`, `separation`, `width`, `epsilon` |
# | $\Phi$, $\nabla_{\mathbb S}\Phi$ | `population_correlation`, `correlation_gradient` |
# | $\omega^\star$, $b^\star$ | `specialised_maximum`, `specialised_offset` |
# | $(u,\omega)$ of Eqs. 16, 17 | `teacher_flow` |
# | $(a,w)$ of the full network | `network_flow` |

# %% tags=["parameters"]
profile = "small"
seed = 0
clusters = [1, 2, 4]
separations = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
n_points = 100
monte_carlo = 1000000
n_starts = 50
label_clusters = 4
label_separation = 4.0
n_labels = 8000
label_chunk = 500
cover_widths = [4, 6, 8, 12, 16, 20, 25, 32]
flow_clusters = 2
flow_separation = 3.0
flow_neurons = 24
flow_time = 250.0
tracking_time = 60.0
tracking_epsilons = [0.3, 0.1, 0.03, 0.01, 0.003, 0.001]
tracking_widths = [2, 4, 8, 16]
theorem_width = 12
theorem_delta = 0.1
theorem_epsilons = [0.01, 0.0001, 1e-06, 1e-08, 1e-10]
time_separations = [0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0]
time_neurons = 50
sgd_epsilon = 0.01
sgd_step = 0.05
sgd_batches = [1000, 4000, 16000]
device = "auto"
n_jobs = 0
stack = 1
results_folder = "results"
cache_folder = ".cache/cells"

# %% [markdown]
# The next cell checks the parameters and stops here, with one line per problem, if a name or a value is wrong.

# %%
from monolib.parameter_files import notebook_parameters
from monolib.theorem1.parameters import Theorem1Parameters

parameters = notebook_parameters(Theorem1Parameters, globals())

# %%
import numpy as np
import pandas as pd
from IPython.display import Markdown

from monolib.cells import CellStore
from monolib.claims import format_claims
from monolib.lemma_checks import checks_table, controls_table, lemma_verdicts
from monolib.project_paths import resolve
from monolib.random_streams import generator
from monolib.results_folder import ResultsFolder
from monolib.sweep import run_cells
from monolib.theorem1 import checks, claims, plots, tables
from monolib.theorem1.ascent import ascend
from monolib.theorem1.correlation import population_correlation, random_directions
from monolib.theorem1.coverage import coverage_bounds, coverage_probability
from monolib.theorem1.critical_points import critical_offset, critical_point, signature, specialised_offset
from monolib.theorem1.runs import planned_cells
from monolib.theorem1.teacher_flow import teacher_flow

folder = resolve(parameters.results_folder) / parameters.profile / "theorem1"
results = ResultsFolder(folder, parameters.identity())
store = CellStore(resolve(parameters.cache_folder))

# %% [markdown]
# The longer computations: finished ones are read from the cache, missing ones are computed now, with a progress bar.

# %%
plan = planned_cells(parameters)
cells = [cell for part in plan.values() for cell in part]
records = run_cells(cells, store, "cpu", parameters.n_jobs)
parts = tables.by_part(plan, records)

# %% [markdown]
# ## Lemma 3: the population correlation
#
# $$\Phi(\omega)=\mathbb E[y\,\phi(\omega^\top x)]=-\frac{1}{K\sqrt6}\sum_c b_c\varphi(b_c)\rho_c^3,\qquad
# b_c=\langle\omega,\mu_c\rangle,\ \rho_c=\langle\omega,v_c\rangle.$$
#
# Against quadrature (Gauss–Hermite in the direction where the integrand is a polynomial, Gauss–Legendre on both sides of
# the ReLU's kink in the other), against sample means, and its gradient against automatic differentiation:

# %%
K, R = parameters.flow_clusters, parameters.flow_separation
lemma3 = [checks.check_correlation(parameters), checks.check_monte_carlo(parameters), checks.check_gradient(parameters)]
checks_table(lemma3)

# %% [markdown]
# *Loose.* The paper says that the formula "is later applied to small weights because of the homogeneity of ReLU
# networks". The formula itself is not homogeneous: at $w=s\,\omega$ the true correlation is $s\,\Phi(\omega)$, and
# putting $w$ into the formula gives something else. What the proof uses is $\Phi$ of the direction, which is right.

# %%
tau = np.eye(K)[0]
omega = critical_point(tau, R, 1)
pd.DataFrame(
    {
        "s Φ(ω), the correlation of w = sω": s * population_correlation(omega, R),
        "the formula at w = sω": population_correlation(s * omega, R),
    }
    for s in (1.0, 0.5, 0.1)
).set_axis(["s = 1", "s = 0.5", "s = 0.1"])

# %% [markdown]
# ## Lemma 4: positive critical points, and which of them are maxima
#
# With $s$ active clusters, $s\,b^2(4-b^2)/(R^2(1-b^2))=1$ and $\rho^2=3b^2/(R^2(1-b^2))$. On the sphere the Hessian has
# exactly $s-1$ positive directions: only $s=1$ is a maximum. The paper shows that there is at least one for $s\ge2$.

# %%
k = parameters.clusters[-1]
points = {s: critical_point((np.arange(k) < s).astype(float), R, 1) for s in range(1, k + 1)}
pd.DataFrame(
    {
        "s": s,
        "|b|": critical_offset(s, R),
        "|ρ|": abs(point[k]),
        "Ψ": population_correlation(point, R),
        "positive, negative, zero directions": str(signature(point, R, 1)),
    }
    for s, point in points.items()
)

# %%
lemma4 = checks.check_critical_points(parameters)
checks_table(lemma4)

# %% [markdown]
# ## Lemma 5: the specialised maxima
#
# $$b^{\star2}=\tfrac12\left(R^2+4-\sqrt{R^4+4R^2+16}\right),\qquad
# \omega^\star=\tau\sqrt{1-b^{\star2}/R^2}\,v_c+\frac{b^\star}{R^2}\mu_c.$$

# %%
lemma5 = checks.check_specialised(parameters)
checks_table(lemma5)

# %% [markdown]
# *Loose.* "For all sufficiently large $R$" is not needed in Lemmas 5 to 7 and so not in Theorem 1: the equation for $t^2$
# has exactly one root in $(0,R^2)$ for every $R>0$. The constant is explicit, $b^\star=\mp(1-\tfrac{3}{2R^2}+\dots)$, and
# $R\,\|\omega^\star-\tau v_c\|<1$ for every $R$, so that $R_0$ can be any positive number and $C=1$. For small $R$ the
# statement is empty, because $1/R$ is large; but the neurons still specialise: as $R\to0$ the component along $\mu_c$
# tends to $1/2$, an angle of 30°.

# %%
radii = np.array([0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 1000.0])
b = specialised_offset(radii)
rho = np.sqrt(1 - (b / radii) ** 2)
distance = np.sqrt(2 - 2 * rho)
pd.DataFrame(
    {
        "R": radii,
        "|b*|": b,
        "R²(1 − |b*|)": radii**2 * (1 - b),
        "|b*|/R": b / radii,
        "‖ω* − τv‖": distance,
        "R ‖ω* − τv‖": radii * distance,
    }
).round(5)

# %% [markdown]
# ## Lemma 6: ascents of fixed sign end at one cluster
#
# From random starts, for every $K$ and $R$ of the parameters ($K=1$ among them, where only the sign is left to choose).
# The orbit is followed in a time in which nothing underflows (`monolib.theorem1.ascent`): at $R=32$ the gradient at a
# random start is of size $e^{-100}$.

# %%
ends = [(cell.config["n_clusters"], cell.config["separation"], record.arrays) for cell, record in parts["landscape"]]
lemma6 = checks.check_ascents(ends)
checks_table(lemma6)

# %%
ascents = tables.ascents_table(parts)
results.show_figure("off_component", plots.draw_off_component(ascents))

# %% [markdown]
# ## Lemma 7: the neuron chooses its own sign
#
# $$\dot u=\Phi(\omega),\qquad\dot\omega=\tanh(u)\,\nabla_{\mathbb S}\Phi(\omega),\qquad u(0)=0.$$

# %%
start = random_directions(parameters.flow_neurons, K, generator(parameters.seed, "initialisation"))
path = teacher_flow(start, R, np.linspace(0.0, parameters.flow_time, 401))
chosen = ascend(start, R)
lemma7 = checks.check_teacher(path, {"cluster": chosen.cluster})
flows = tables.flows_table(path, chosen.cluster)
checks_table(lemma7)

# %% [markdown]
# The flows on the sphere. Left, the coordinates $\rho_1,\rho_2$ of the first two clusters' directions: the sphere falls
# into the unit disc, and the maxima lie on the axes. Right, each neuron in the plane of the cluster that it chooses.

# %%
offset = float(specialised_offset(np.array(R)))
maximum = (offset / R, np.sqrt(1 - (offset / R) ** 2))
results.show_figure("flows", plots.draw_flows(flows, maximum))

# %%
results.show_figure("alignment", plots.draw_alignment(flows, maximum[1]))

# %% [markdown]
# *How early is early?* A neuron that starts with a small $|\Phi(\omega^0)|$ waits long. The median neuron has some cluster
# with $|b_c|$ near 1, where the correlation is not small, and its time grows slowly with $R$. But Theorem 1 is about
# *every* neuron, and its $T_\delta$ is the time of the slowest: one whose $b_c$ all have their typical size
# $b_c^2\approx R^2/2K$ has $\Phi(\omega^0)\sim e^{-R^2/4K}$. The theorem fixes $R$ first, so this contradicts nothing;
# but at fixed $K$ the better the clusters are separated, the longer $T_\delta$, without bound.

# %%
times = tables.times_table(parts)
results.show_figure("times", plots.draw_times(times, K))

# %%
times

# %% [markdown]
# ## Lemma 8: labels and coverage
#
# $J$ is uniform and independent over neurons; all $K$ clusters are covered with probability
# $\sum_j(-1)^j\binom Kj(1-j/K)^m\ge1-K(1-1/K)^m\ge1-Ke^{-m/K}$.

# %%
labels = tables.labels_of(parts)
lemma8 = checks.check_labels(labels, parameters.label_clusters, parameters.cover_widths)
coverage = tables.coverage_table(labels, parameters.label_clusters, parameters.cover_widths)
results.show_figure("coverage", plots.draw_coverage(coverage, parameters.label_clusters))

# %%
checks_table(lemma8)

# %% [markdown]
# The bound says nothing (it is negative) for $m<K\log K$. How many neurons it asks for, and how many are needed:

# %%
k, widths = parameters.label_clusters, np.arange(1, 400)
exact = np.array([coverage_probability(k, int(m)) for m in widths])
bound = coverage_bounds(k, widths)[1]
pd.DataFrame(
    {
        "η": eta,
        "needed": widths[np.argmax(exact >= 1 - eta)],
        "by the bound": widths[np.argmax(bound >= 1 - eta)],
        "K log(K/η)": k * np.log(k / eta),
    }
    for eta in (0.5, 0.1, 0.01)
)

# %% [markdown]
# ## Lemma 9: the full network follows its neurons
#
# Population gradient flow of the whole network, with $\mathbb E[f_\theta\,\phi(\omega_j^\top x)]$ and
# $\mathbb E[f_\theta1_{\{\omega_j^\top x>0\}}x]$ in closed form (Gaussian orthant probabilities by Owen's function). The
# claim is $\sup_{t\le T}(|u_j-\bar u_j|+\|\omega_j-\bar\omega_j\|)\le L_Tm\varepsilon^2$.

# %%
tracking = tables.tracking_table(parts)
theorem = tables.theorem_table(parts)
by_epsilon, by_width = (tracking[tracking["part"] == part] for part in ("epsilons", "widths"))
pairs = [
    list(part[[name, "error"]].itertuples(index=False)) for part, name in ((by_epsilon, "epsilon"), (by_width, "width"))
]
lemma9 = checks.check_tracking(*pairs)
results.show_figure("tracking", plots.draw_tracking(tracking, theorem, parameters.theorem_delta, R))

# %%
tracking

# %% [markdown]
# *How small is small?* $T_\delta$ is the time of the slowest neuron, and until then the fast ones have grown to
# $a\approx\varepsilon e^{u}/2$. The network is no longer small unless $\varepsilon\ll e^{-\max|u|}$: here is the network of
# the parameters at its $T_\delta$. The $\varepsilon_0$ of Theorem 1 is exponentially small in $T_\delta$.

# %%
theorem.assign(e_to_minus_u=np.exp(-theorem["largest_amplitude"]))

# %% [markdown]
# ## Plain SGD on samples
#
# The same network, trained by small steps on fresh samples, beside its population flow, until the time of Lemma 9.

# %%
sgd = tables.sgd_table(parts)
largest = parts["sgd"][-1][1].arrays
lemma9 += checks.check_sgd(parameters.sgd_batches, [record.arrays["drift"][-1] for _, record in parts["sgd"]])
results.show_figure("sgd", plots.draw_sgd(largest["times"], largest["sgd"], largest["flow"], sgd))

# %% [markdown]
# ## Every check

# %%
epsilons = list(theorem["epsilon"])
distances = [record.arrays["distance"] for _, record in parts["theorem"]]
theorem1 = [checks.check_theorem(epsilons, distances, parameters.theorem_delta, R)]
everything = lemma3 + lemma4 + lemma5 + lemma6 + lemma7 + lemma8 + lemma9 + theorem1
table = checks_table(everything)
table

# %% [markdown]
# The same checks with something wrong put in: each must be detected.

# %%
controls = controls_table(checks.negative_controls(parameters, labels, *pairs))
controls

# %% [markdown]
# ## Figure 7: how the lemmas depend on each other, with their verdicts

# %%
results.show_figure("dependencies", plots.draw_dependencies(lemma_verdicts(table), table))

# %% [markdown]
# ## Verdicts
#
# From a lemma's number to its function and test: the table in the README, section Theory.

# %%
verdicts = claims.theorem1_claims(table, parameters)
results.write_table("checks", table)
results.write_table("controls", controls)
for name, content in (("ascents", ascents), ("flows", flows), ("coverage", coverage), ("tracking", tracking)):
    results.write_table(name, content)
for name, content in (("theorem", theorem), ("times", times), ("sgd", sgd)):
    results.write_table(name, content)
results.write_claims(verdicts)
results.write_provenance({cell.key: record.provenance for cell, record in zip(cells, records, strict=True)})
Markdown(format_claims([(parameters.profile, claim) for claim in verdicts], "markdown"))
