"""Independent random generators derived from one seed, so that no global state is ever seeded."""

import numpy as np

# The position of a name is part of every result that was computed with it: append, never reorder.
STREAMS = (
    "train",
    "validation",
    "test",
    "initialisation",
    "batches",
    "links",
    "geometry",
    "bandwidth",
    "agop",
    "eigenpro",
    "gates",
)


def generator(seed: int, stream: str, index: int = 0) -> np.random.Generator:
    """Generator for one purpose (`stream`, one of STREAMS) of one seed.

    Streams of one seed are statistically independent (NumPy's SeedSequence spawn keys); `index` numbers the
    members of a stream, for instance the epochs of "batches".
    Raises ValueError for an unknown stream or a negative seed.
    """
    if stream not in STREAMS:
        raise ValueError(f"stream={stream!r}: must be one of {', '.join(STREAMS)}")
    if seed < 0:
        raise ValueError(f"seed={seed}: must be an integer ≥ 0")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAMS.index(stream), index)))
