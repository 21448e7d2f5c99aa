"""The kernels page: its cells, tables, measures and verdicts."""

import numpy as np
import pandas as pd
import pytest

from monolib.cells import CellStore
from monolib.claims import collect_claims
from monolib.errors import UserError
from monolib.figures import FIGURES
from monolib.kernel_cells import cell_law, compute_kernel_cells, fit_config, fit_work, kernel_cell, stack_key
from monolib.kernel_path import claims, tables
from monolib.kernel_path.parameters import KernelsParameters
from monolib.kernel_path.runs import planned_fits
from monolib.local_predictors import fit_local
from monolib.mixed_link_data import MixedLinkData
from monolib.parameter_files import check_parameters, read_yaml
from monolib.rfm import RFMConfig, fit_rfm
from monolib.run_figure import figure_parameters
from monolib.sweep import run_cells


def parameters(root, **changes):
    values = read_yaml(root / "parameters" / "smoke" / "kernels.yaml") | changes
    return check_parameters(KernelsParameters, values)


@pytest.fixture(scope="module")
def computed(root, tmp_path_factory):
    """(parameters, planned fits, records) of the smoke profile."""
    p = parameters(root)
    planned = planned_fits(p)
    store = CellStore(tmp_path_factory.mktemp("cells"))
    return p, planned, run_cells([fit.cell for fit in planned], store, n_jobs=1)


def test_cells_hold_what_the_functions_compute(tmp_path):
    _, train, test = MixedLinkData(3, 200, 50, 0).draw()
    config = RFMConfig(n_updates=1)
    cells = [kernel_cell(method, MixedLinkData(3, 200, 50, 0), config) for method in ("global", "oracle")]
    store = CellStore(tmp_path)
    compute_kernel_cells(cells, store, "cpu")
    fit = fit_rfm(train.x, train.y, config, train.cluster)
    assert store.read(cells[0]).result["test_mse"] == fit.test_mse(test.x, test.y)
    np.testing.assert_array_equal(store.read(cells[0]).arrays["metrics"][1], fit.iterations[1].metric)
    local = fit_local(train.x, train.y, train.cluster, config)
    error = np.mean(np.square(local.predict(test.x, test.cluster) - test.y))
    assert store.read(cells[1]).result["test_mse"][-1] == error
    assert not list(tmp_path.glob("*.progress"))


def test_cells_are_told_apart_and_keep_their_settings():
    config = RFMConfig(n_updates=1, agop_points=77, device="cpu", memory_gib=1.5)
    cell = kernel_cell("global", MixedLinkData(3, 200, 50, 2), config)
    assert cell.config["data"] == {"n_clusters": 3, "n_train": 200, "n_test": 50, "seed": 2}
    again = fit_config(cell)
    assert (again.agop_points, again.memory_gib) == (77, None)
    assert cell.key == kernel_cell("global", MixedLinkData(3, 200, 50, 2), RFMConfig(n_updates=1, agop_points=77)).key
    assert cell_law(cell).n_clusters == 3
    assert stack_key(cell) != stack_key(kernel_cell("global", MixedLinkData(3, 200, 50, 1), config))
    exact = fit_work(kernel_cell("global", MixedLinkData(10, 5000, 50, 0), RFMConfig()))
    assert fit_work(kernel_cell("oracle", MixedLinkData(10, 5000, 50, 0), RFMConfig())) < exact
    with pytest.raises(UserError, match="method='local'"):
        kernel_cell("local", MixedLinkData(3, 200, 50, 0), config)


def test_tables_hold_every_fit(computed):
    p, planned, records = computed
    errors = tables.errors_table(planned, records)
    assert len(errors) == 2 * len(p.clusters) * len(p.seeds) * (p.n_updates + 1)
    summary = tables.summary_table(errors)
    first = errors[(errors["n_clusters"] == 1) & (errors["method"] == "global")]["test_mse"]
    assert summary.loc[0, "laplace"] == first.iloc[0]
    assert summary.loc[0, "rfm"] == first.iloc[-1]
    assert summary.loc[0, "rfm_envelope"] == first.min()
    assert summary.loc[0, "laplace_over_rfm"] == first.iloc[0] / first.min()
    entries = tables.entries_table(planned, records, p.seeds[0])
    identity = entries[(entries["n_clusters"] == 1) & (entries["iteration"] == 0)]
    np.testing.assert_array_equal(identity.pivot(index="row", columns="column", values="value"), np.eye(20))
    curves = tables.curves_table(planned, records)
    assert list(curves["method"].unique()) == ["EigenPro", "gradient descent", "exact"]
    assert len(curves[curves["method"] == "gradient descent"]) == p.descent_epochs
    variations = tables.variations_table(planned, records)
    assert len(variations) == 1 + sum(len(getattr(p, n)) for n in type(p).model_fields if n.startswith("variation_"))
    same = variations.set_index("variation")[["test_mse_0", "test_mse_3"]]
    np.testing.assert_allclose(same.loc["AGOP normalised: none"], same.loc["as in the comparison"], rtol=1e-9)


def test_measures_of_a_metric_in_closed_form():
    v = np.zeros((2, 4))
    v[0, 0] = v[1, 1] = 1.0
    both = tables.metric_measures(np.diag([3.0, 3.0, 0.0, 0.0]), v)
    assert both["effective_dimension"] == pytest.approx(2.0)
    assert both["direction_weight"] == pytest.approx(0.5)
    one = tables.metric_measures(np.diag([5.0, 0.0, 0.0, 0.0]), v[:1])
    assert one == pytest.approx({"top_cosine": 1.0, "effective_dimension": 1.0, "direction_weight": 1.0})
    assert tables.metric_measures(np.eye(4), v)["direction_weight"] == pytest.approx(0.25)


def summary(ratios, oracle=0.1):
    k = [1, 2, 10][: len(ratios)]
    return pd.DataFrame(
        {"n_clusters": k, "laplace_over_rfm": ratios, "oracle_rfm": oracle, "rfm_envelope": 0.5, "laplace": 1.0}
    )


def curves(early):
    rows = [("EigenPro", 1, 0.1, 0.5), ("EigenPro", 2, 4e-4, early), ("exact", 0, 1e-12, 0.1)]
    return pd.DataFrame(rows, columns=["method", "epoch", "train_mse", "test_mse"])


def metrics(cosine, k=1):
    rows = [(k, 0, 0, 0.3), (k, 0, 3, cosine), (k, 1, 3, 0.999)]
    return pd.DataFrame(rows, columns=["n_clusters", "seed", "iteration", "top_cosine"])


@pytest.mark.parametrize(
    ("arguments", "verdicts"),
    [
        ((summary([9.0, 3.0, 1.1]), metrics(0.995), curves(0.104)), ["reproduced"] * 4),
        ((summary([9.0, 10.0, 1.1]), metrics(0.5), curves(0.12)), ["partly", "partly", "reproduced", "not reproduced"]),
        ((summary([1.0, 2.0, 3.0], oracle=0.6), metrics(0.5), curves(0.09)), ["partly", *["not reproduced"] * 3]),
        ((summary([2.0]), metrics(1.0, k=2), curves(0.1)), [*["not run at this size"] * 3, "reproduced"]),
    ],
)
def test_verdicts(root, arguments, verdicts):
    found = claims.kernel_claims(*arguments, parameters(root))
    assert [claim.id for claim in found] == ["K.1", "K.2", "K.3", "K.4"]
    assert [claim.verdict for claim in found] == verdicts
    assert not any("|" in text for claim in found for text in (claim.claim, claim.paper, claim.here))  # table columns


def test_committed_results_are_of_the_committed_parameters(root):
    entry = FIGURES["kernels"]
    kept = pd.read_json(root / "results" / "small" / "kernels" / "parameters.json", typ="series")
    assert kept.to_dict() == figure_parameters(entry, "small").identity()
    assert {claim.id for profile, claim in collect_claims(root / "results") if profile == "small"} >= {"K.1", "K.4"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clusters": [2, 1]}, "clusters=.*ascending"),
        ({"seeds": [0, 0]}, "seeds=.*repeat"),
        ({"n_train": 2}, "n_train=2: must be at least 3"),
        ({"variation_solvers": ["lu"]}, "variation_solvers"),
        ({"ridge": "1e-6"}, "ridge='1e-6': is text, not a number"),
    ],
)
def test_bad_parameters_are_refused_by_name(root, changes, message):
    with pytest.raises(UserError, match=message):
        parameters(root, **changes)
