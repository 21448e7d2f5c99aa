"""monolib: the reproduction of "Revenge of Monosemanticity: Specialized Neurons Improve Data Efficiency in MLPs".

Where to look: `laws` and `links` (§2, A.1), `networks`, `gradients` and `training` (§2, A.1, A.2), `specialization`
(A.1), one subpackage per figure (`fig1`), and `command_line` for running them.
"""

__version__ = "0.1.0"
