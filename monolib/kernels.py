"""The metric Laplace kernel (Eq. 7), its Gram matrix, and products with it that never hold an n × m × d tensor.

    k(x, z) = exp(−‖M^{1/2}(x − z)‖/h)

Points are centred and mapped once, u = M^{1/2}(x − center)/h, so that k = exp(−‖u − u′‖). There are two ways to the
distances: *expanded*, ‖u‖² + ‖u′‖² − 2⟨u, u′⟩ as one matrix product, for products K v; and *accurate*, the same in
float64 with exact differences for all pairs that are close, for Gram matrices and gradients (near distance zero the
expansion loses half of the digits: a rank-one metric would make the Gram matrix indefinite).
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from monolib.errors import UserError

TILE_BYTES = {"cpu": 2**20, "cuda": 2**28}  # a tile stays in a core's cache; a GPU wants large ones
LARGEST_SQUARE = 87.0**2  # exp(−87) is the smallest normal float32; below, vector libraries are a hundred times slower
NEAR = 1e-4  # squared distances below this share of the largest squared diameter are recomputed from differences
DENSE = 0.05  # share of such pairs in a tile from which the whole tile is computed from differences


def metric_root(metric: Tensor) -> Tensor:
    """Symmetric root M^{1/2}, (d, d) float64, by eigendecomposition with eigenvalues clamped at 0.

    Raises UserError when M is not square, not symmetric or not finite.
    """
    m = metric.double()
    if m.ndim != 2 or m.shape[0] != m.shape[1]:
        raise UserError(f"metric.shape={tuple(m.shape)}: must be (d, d)")
    if not torch.isfinite(m).all():
        raise UserError("metric: must be finite")
    if (m - m.T).abs().max() > 1e-6 * m.abs().max():
        raise UserError("metric: must be symmetric")
    eigenvalues, vectors = torch.linalg.eigh(0.5 * (m + m.T))
    return (vectors * eigenvalues.clamp_min(0.0).sqrt()) @ vectors.T


def mapped(x: Tensor, root: Tensor, center: Tensor, bandwidth: float, dtype: torch.dtype) -> Tensor:
    """Points u = M^{1/2}(x − center)/h, (n, d), computed in float64 and rounded to `dtype`.

    Raises UserError for a bandwidth that is not a number > 0.
    """
    if not 0 < bandwidth < float("inf"):
        raise UserError(f"bandwidth={bandwidth}: must be a number > 0")
    return ((x.double() - center) @ (root / bandwidth)).to(dtype)


@contextmanager
def full_precision() -> Iterator[None]:
    """Keep CUDA from rounding the factors of float32 products to TF32, which has 10 bits."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def tile_side(device: str, itemsize: int, tile_bytes: int | None = None) -> int:
    """Side of a square tile: about the memory allowed, and an odd multiple of 8, since rows a power of two apart fall
    into the same cache lines."""
    side = int(((tile_bytes or TILE_BYTES[device]) / itemsize) ** 0.5)
    return max(8, side // 16 * 16 - 8)


def _factors(u: Tensor) -> tuple[Tensor, Tensor]:
    """A (n, d+2) and B (d+2, n) with A B = squared distances: rows [−2u, ‖u‖², 1], columns [u, 1, ‖u‖²]."""
    square = u.square().sum(1, keepdim=True)
    one = torch.ones_like(square)
    return torch.cat([-2.0 * u, square, one], 1), torch.cat([u, one, square], 1).T.contiguous()


class KernelTiles:
    """Kernel values between points `u` (n, d) and `z` (m, d; None: u itself), tile by tile in one reused buffer.

    Both are mapped points of one dtype and device. With z = None the diagonal is exactly 1.
    """

    def __init__(self, u: Tensor, z: Tensor | None = None, tile_bytes: int | None = None) -> None:
        self.same = z is None
        self.left, own_right = _factors(u)
        self.right = own_right if z is None else _factors(z)[1]
        self.side = tile_side(u.device.type, u.element_size(), tile_bytes)
        rows, columns = min(self.side, len(u)), min(self.side, self.right.shape[1])
        self._buffer = u.new_empty(rows * columns)

    def ranges(self, start: int, stop: int) -> list[tuple[int, int]]:
        """[start, stop) in pieces of at most a tile's side."""
        return [(i, min(i + self.side, stop)) for i in range(start, stop, self.side)]

    def tile(self, rows: tuple[int, int], columns: tuple[int, int], out: Tensor | None = None) -> Tensor:
        """K[rows, columns] from expanded distances, in the buffer or in `out` (any size)."""
        shape = (rows[1] - rows[0], columns[1] - columns[0])
        block = self._buffer[: shape[0] * shape[1]].view(shape) if out is None else out
        torch.mm(self.left[rows[0] : rows[1]], self.right[:, columns[0] : columns[1]], out=block)
        first, last = max(rows[0], columns[0]), min(rows[1], columns[1])
        if self.same and first < last:  # pairs of a point with itself
            block[first - rows[0] : last - rows[0], first - columns[0] : last - columns[0]].diagonal().zero_()
        return block.clamp_(0.0, LARGEST_SQUARE).sqrt_().neg_().exp_()


def kernel_product(u: Tensor, z: Tensor | None, v: Tensor, tile_bytes: int | None = None) -> Tensor:
    """K(u, z) v for mapped points u (n, d), z (m, d) and v (m,) or (m, c); z = None means K(u, u) v.

    With z = None every tile off the diagonal serves twice, as K and as its transpose, which halves the work.
    Expanded distances in the points' dtype; memory: the factors and one tile (1 MiB on a CPU, 256 MiB on CUDA).
    """
    tiles = KernelTiles(u, z, tile_bytes)
    columns = v if v.ndim == 2 else v.unsqueeze(1)
    out = columns.new_zeros(len(u), columns.shape[1])
    with full_precision():
        if z is None:
            _symmetric_product(tiles, columns, out)
        else:
            for rows in tiles.ranges(0, len(u)):
                _row_product(tiles, rows, (0, len(z)), columns, out[rows[0] : rows[1]])
    return out if v.ndim == 2 else out.squeeze(1)


def _row_product(tiles: KernelTiles, rows: tuple[int, int], columns: tuple[int, int], v: Tensor, out: Tensor) -> None:
    """out += K[rows, columns] v[columns]."""
    for part in tiles.ranges(*columns):
        _add_product(out, tiles.tile(rows, part), v[part[0] : part[1]])


def _symmetric_product(tiles: KernelTiles, v: Tensor, out: Tensor) -> None:
    ranges = tiles.ranges(0, len(out))
    for i, rows in enumerate(ranges):
        for columns in ranges[i:]:
            block = tiles.tile(rows, columns)
            _add_product(out[rows[0] : rows[1]], block, v[columns[0] : columns[1]])
            if columns != rows:
                _add_product(out[columns[0] : columns[1]], block.T, v[rows[0] : rows[1]])


def _add_product(out: Tensor, block: Tensor, v: Tensor) -> None:
    """out += block v; one column as a matrix-vector product, which is faster."""
    if v.shape[1] == 1:
        out[:, 0].addmv_(block, v[:, 0])
    else:
        out.addmm_(block, v)


def rows_product(tiles: KernelTiles, rows: tuple[int, int], columns: tuple[int, int], v: Tensor) -> Tensor:
    """K[rows, columns] v[columns] for v (m,), in pieces; `rows` may be longer than a tile."""
    out = v.new_zeros(rows[1] - rows[0], 1)
    for part in tiles.ranges(*rows):
        _row_product(tiles, part, columns, v.unsqueeze(1), out[part[0] - rows[0] : part[1] - rows[0]])
    return out.squeeze(1)


def accurate_squares(u: Tensor, z: Tensor, diameter: float) -> Tensor:
    """Squared distances (n, m), float64, of mapped points: relative error about 1e-11 at any distance.

    The expansion in float64, and exact differences for the pairs closer than √NEAR times `diameter`, a bound of the
    distances that occur.
    """
    left, right = u.double(), z.double()
    squares = torch.mm(_factors(left)[0], _factors(right)[1])
    limit = NEAR * diameter**2
    if not float(squares.min()) < limit:  # the usual case, away from the diagonal
        return squares
    near = (squares < limit).nonzero()
    if len(near) > DENSE * squares.numel():
        return torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist").square_()
    i, j = near[:, 0], near[:, 1]
    squares[i, j] = (left[i] - right[j]).square_().sum(1)
    return squares


def point_diameter(*sets: Tensor) -> float:
    """Twice the largest norm of the points, a bound of their distances."""
    return 2.0 * max(float(u.double().square().sum(1).max().sqrt()) for u in sets)


def gram(u: Tensor, z: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """Gram matrix K(u, z), (n, m), of mapped points in their dtype, from accurate distances; z = None: K(u, u).

    out: memory for it, of the right shape and dtype (fresh memory for a large matrix costs as much as filling it).
    K(u, u) is exactly symmetric with an exactly unit diagonal. Source: Eq. 7.
    """
    other = u if z is None else z
    out = u.new_empty(len(u), len(other)) if out is None else out
    diameter = point_diameter(u, other)
    side = tile_side(u.device.type, 8)
    with full_precision():
        for i in range(0, len(u), side):
            for j in range(i if z is None else 0, len(other), side):
                squares = accurate_squares(u[i : i + side], other[j : j + side], diameter)
                block = squares.to(u.dtype).clamp_(0.0, LARGEST_SQUARE).sqrt_().neg_().exp_()
                if z is None and j == i:
                    block = 0.5 * (block + block.T)  # a matrix product need not round both halves alike
                out[i : i + side, j : j + side] = block
                if z is None and j > i:
                    out[j : j + side, i : i + side] = block.T
    if z is None:
        out.diagonal().fill_(1.0)
    return out
