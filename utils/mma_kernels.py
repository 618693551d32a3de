"""Kernels of mma for utils/race-kernels: block and warp tiles, depths of a stage, warps and CTAs that share k, by bounds
that are not the planner's."""
import itertools
import math
import random

SMS, WARPS = 132, 4  # the fewest warps that keep a tensor core each busy
SIDES = (16, 32, 48, 64, 80, 96, 112, 128)
WARP_SIDES = (16, 24, 32, 40, 48, 56, 64)
SLICES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
BYTES = {"f64": 8, "tf32": 4, "f16": 2, "bf16": 2, "s8": 1, "u8": 1, "e4m3": 1, "e5m2": 1}
SUMS = {"f64": 64 * 32}  # of a warp: more would not fit the registers
MOST_SUMS = 64 * 64
WORTH = 1.4  # what takes longer than so many times the best guess is left out


class Kernel:
    def __init__(self, block, warp, depth, warp_depth, slices):
        self.block, self.warp, self.depth, self.warp_depth, self.slices = block, warp, depth, warp_depth, slices

    def warps(self):
        return self.block[0] // self.warp[0] * (self.block[1] // self.warp[1]) * (self.depth // self.warp_depth)

    def fields(self, instruction):
        split = "none" if self.slices == 1 else f"split_k split.slices={self.slices}"
        words = [f"tile.block=[{self.block[0]},{self.block[1]},{self.depth}]",
                 f"tile.warp=[{self.warp[0]},{self.warp[1]},{self.warp_depth}]", "instruction=mma", f"split.mode={split}"]
        return " ".join(words + ([f"tile.instruction=[16,8,{instruction}]"] if instruction else []))

    def clocks(self, m, n, k, batch, size):
        """A launch; steps that wait, each multiply and copy by all CTAs of an SM; sums of slices."""
        ctas = math.ceil(batch * math.ceil(m / self.block[0]) * math.ceil(n / self.block[1]) * self.slices / SMS)
        steps = math.ceil(math.ceil(k / self.depth) / self.slices)
        area = self.block[0] * self.block[1]
        products = area * self.depth * size ** 2 / (64 * 128)  # f64 128 a clock, bytes 64 times as many
        read = area * self.depth * size * (self.warp[0] + self.warp[1]) / (self.warp[0] * self.warp[1]) / 128
        copied = sum(self.block) * self.depth * size / 128
        meeting = 0 if self.slices == 1 else 2000 + size * area * self.slices / 50
        return 2500 + steps * (100 + ctas * (max(products, read) + copied)) + meeting


def kernels(size, sums, small):
    """Of elements of `size` bytes; `small`: blocks of at most 64x64."""
    for m, n in itertools.product(SIDES, SIDES):
        if m * n > (64 * 64 if small else 128 * 80):
            continue
        for warp in itertools.product(WARP_SIDES, WARP_SIDES):
            if m % warp[0] or n % warp[1] or warp[0] % 16 or warp[0] * warp[1] > sums:
                continue
            for depth in (128 // size, 256 // size) if size == 8 else (64 // size, 128 // size):
                for along in (1, 2, 4):
                    kernel = Kernel((m, n), warp, depth, depth // along, 1)
                    if kernel.warps() in (WARPS // 2, WARPS) and (size < 8 or m * n <= 64 * 64 or depth == 16):
                        yield kernel


def guesses(problem, most):
    """Fields of kernels that nobody was asked for: the best by their bound, at most two of a block tile, a third of all by
    lot among what may be worth it; of f64 with either instruction. A name draws the same lot again."""
    m, n, k = (problem["problem"][each] for each in "mnk")
    batch = problem["problem"].get("batch", 1)
    kind = problem["a"]["type"]
    if kind not in BYTES or not all(isinstance(each, int) for each in (m, n, k, batch)):
        return []
    size = BYTES[kind]
    along = problem["a"].get("layout", "row") == "row", problem["b"].get("layout", "row") == "col"
    found = []
    for whole in kernels(size, SUMS.get(kind, MOST_SUMS), kind != "f64"):
        # threads that copy lines of m or n, no power of two long, do not divide evenly among them
        if any(not contiguous and side & (side - 1) for contiguous, side in zip(along, whole.block)):
            continue
        for slices in SLICES:
            if slices == 1 or k >= 8 * whole.depth * slices:
                kernel = Kernel(whole.block, whole.warp, whole.depth, whole.warp_depth, slices)
                found.append((kernel.clocks(m, n, k, batch, size), kernel))
    if not found:
        return []
    found.sort(key=lambda each: each[0])
    chosen, taken = [], {}
    for _, kernel in found:
        if len(chosen) < most - most // 3 and taken.get(kernel.block, 0) < 2:
            taken[kernel.block] = taken.get(kernel.block, 0) + 1
            chosen.append(kernel)
    rest = [kernel for time, kernel in found if time <= WORTH * found[0][0] and kernel not in chosen]
    chosen += random.Random(problem["name"]).sample(rest, min(most // 3, len(rest)))
    depths = (4, 8) if kind == "f64" else (None,)
    return [kernel.fields(depth) for kernel in chosen for depth in depths]
