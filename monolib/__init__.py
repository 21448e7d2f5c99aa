"""monolib: the reproduction of "Revenge of Monosemanticity: Specialized Neurons Improve Data Efficiency in MLPs".

Where to look: `laws` and `links` (§2, A.1, A.2), `networks`, `gradients` and `training` (§2, A.1, A.2),
`specialization` (A.1), `kernels`, `rfm`, `eigenpro`, `gates` and `estimators` (A.2, A.3), one subpackage per figure
(`fig1`, `kernel_path`), and `command_line` for running them.
"""

__version__ = "0.1.0"
