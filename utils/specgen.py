"""Random specs that are valid by construction, for utils/random-specs.

The rules here are written from the manuals and docs/spec.md, not from the planner: a spec from here that the compiler
refuses is a finding. Tiles are drawn in the kernel's view and exchanged at the end when D is in column order."""
import math
import random

MAX_PRODUCTS = 5_000_000  # multiplications of all padded tiles: what the emulator does in well under a second
SHARED = {"sm_80": 166912, "sm_86": 101376, "sm_89": 101376, "sm_90a": 232448}
WGMMA_SHARED = SHARED["sm_90a"] - 2048  # barriers and the alignment of the first stage
SPAN = {"none": 32, "32B": 32, "64B": 64, "128B": 128}  # bytes of a swizzled row (no swizzle: wgmma's depth)
BITS = {"f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "f32": 32, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}
# PTX ISA 9.7.14.5.14: shapes of mma.sync, the compiler's own choice first; those of f64 with 16 rows came with sm_90.
# Not drawn: m8n8k4 of f16, which ptxas 13 replaces by a called function that spills as it likes.
SHAPES = {"f16": [(16, 8, 16), (16, 8, 8)], "bf16": [(16, 8, 16), (16, 8, 8)],
          "tf32": [(16, 8, 8), (16, 8, 4)], "f64": [(16, 8, 8), (16, 8, 16), (16, 8, 4), (8, 8, 4)],
          "s8": [(16, 8, 32), (16, 8, 16), (8, 8, 16)], "s4": [(16, 8, 64), (16, 8, 32), (8, 8, 32)],
          "b1": [(16, 8, 256), (16, 8, 128), (8, 8, 128)]}
SHAPES |= {"u8": SHAPES["s8"], "u4": SHAPES["s4"], "e4m3": SHAPES["s8"][:2], "e5m2": SHAPES["s8"][:2]}
# PTX ISA 9.7.14.4: shapes of wmma.
WIDE = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
WMMA = {"f16": WIDE, "bf16": WIDE, "s8": WIDE, "u8": WIDE, "tf32": [(16, 16, 8)], "f64": [(8, 8, 4)],
        "s4": [(8, 8, 32)], "u4": [(8, 8, 32)], "b1": [(8, 8, 128)]}
INTEGERS = ("s8", "u8", "s4", "u4", "b1")
OTHERS = ("tf32", "e4m3", "e5m2", "s8", "u8")  # that wgmma multiplies


def shared_line(elements, bits, swizzle):
    """Bytes of a line of an operand tile of the mma kernels in shared memory (docs/design.md, Layout)."""
    line = -(-elements * bits // 8 // 16) * 16
    if swizzle == "padded":
        return line + 32  # 16, or what fragments of wmma ask for
    if swizzle == "xor":
        return max(16, 1 << (line - 1).bit_length()) if line <= 128 else -(-line // 128) * 128
    return line
FAMILIES = {"cooperative": 3, "pingpong": 3, "pipelined": 2, "cp_async": 4, "ld": 1, "auto": 2}


def generate(seed):
    """(spec, arguments): a nested dict in the order of the reference page, and arguments for `gemmc run`."""
    return Draw(seed).spec()


def to_yaml(spec):
    def value(item):
        if isinstance(item, dict):
            return "{" + ", ".join(f"{key}: {value(entry)}" for key, entry in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ", ".join(map(str, item)) + "]"
        return str(item)
    return "".join(f"{key}: {value(item)}\n" for key, item in spec.items())


class Draw:
    def __init__(self, seed):
        self.halves = False
        self.random = random.Random(seed)
        self.of_batches = random.Random(f"batch {seed}")  # its own, so that batches do not change all other specs

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *choices):
        return self.random.choice(choices)

    def spec(self):
        self.family = self.random.choices(list(FAMILIES), FAMILIES.values())[0]
        self.wgmma = self.family in ("cooperative", "pingpong", "pipelined")
        self.arguments = []
        self.types()
        self.tile = None
        if self.wgmma:
            self.wgmma_tile()
        elif self.family != "auto":
            self.mma_tile()
        else:
            self.block, self.stages = (128, 128, 64), 2  # only to draw sizes near
        self.sizes()
        self.alignment()
        self.scales()
        self.shifted = self.shift() if self.wgmma and self.shifts else None
        spec = self.assemble()
        if self.of_batches.random() < (0.6 if self.shifted else 0.25):
            self.batch(spec)
        return spec, self.arguments

    def batch(self, spec):
        """A few products of the same kind. Matrices lie end to end, further apart, in each other's rows, or are shared; those
        that TMA or cp.async reads as they lie start where their rows do."""
        pick = self.of_batches.choice
        count = pick((0, 1, 2, 2, 2, 3, 3)) if self.of_batches.random() < 0.3 else pick((2, 2, 3))
        spec["problem"]["batch"] = count
        if pick((0, 0, 1)):
            spec["problem"]["batch"] = "dynamic"
            self.arguments += ["--batch", str(count)]
        rows, columns = {"a": "m", "b": "k", "c": "m", "d": "m"}, {"a": "k", "b": "n", "c": "n", "d": "n"}
        for name in "abcd":
            if name not in spec:
                continue
            in_rows = self.layouts[name] == "row"
            along, across = (columns if in_rows else rows)[name], (rows if in_rows else columns)[name]
            if along in self.dynamic or across in self.dynamic:
                continue
            bits = {"a": self.bits, "b": self.bits, "c": BITS[self.c_type()], "d": BITS[self.d_type]}[name]
            length, lines = max(1, self.size[along]), self.size[across]
            ld = self.ld.get(name, length)
            unit = math.gcd(ld, 128 // bits) if name in "cd" else (
                1 if name == self.shifted else 128 // bits if self.wgmma and (not self.repack or name == self.inside)
                else max(1, 32 // bits) if self.family == "cp_async" else self.per_byte)
            stride = None
            kind = pick(("end to end", "end to end", "apart", "shared", "rows"))
            if kind == "apart":
                stride = lines * ld + pick((1, 2, 5)) * unit
            elif kind == "shared" and name != "d":
                stride = 0
            elif kind == "rows" and count > 1 and spec["problem"]["batch"] != "dynamic":
                stride = -(-length // unit) * unit
                spec[name]["ld"] = stride * (count - 1) + -(-length // unit) * unit + (0 if name in "cd" else pick((0, unit)))
            if stride is None:
                continue
            spec[name]["batch_stride"] = stride
            if pick((0, 0, 0, 1)) and name != self.shifted:
                spec[name]["batch_stride"] = "dynamic"
                self.arguments += [f"--stride-{name}", str(stride)]

    # ---- what is computed

    def types(self):
        self.other = self.wgmma and self.chance(0.3)
        if self.wgmma:
            self.input = self.pick(*OTHERS) if self.other else self.pick("f16", "bf16")
        else:
            self.input = self.pick("f16", "bf16") if self.chance(0.5) else self.pick(*SHAPES)
        self.bits, self.per_byte = BITS[self.input], max(1, 8 // BITS[self.input])
        self.accumulator = "f16" if self.input == "f16" and self.chance(0.25) else "f32"
        self.d_type = self.pick("f16", "bf16", "f32")
        if self.input in INTEGERS + ("f64",):
            self.accumulator = self.d_type = "f64" if self.input == "f64" else "s32"
        self.floats = self.input in INTEGERS and self.chance(0.4)  # of whole sums, which no instruction of wmma gives
        if self.floats:
            self.d_type = self.pick("f16", "bf16", "f32")
        self.layouts = {name: self.pick("row", "col") for name in "abd"}
        self.turns = self.other and self.chance(0.35)  # wgmma reads these with k contiguous: a copy has it so
        if self.per_byte > 1 or (self.other and not self.turns):  # packed along k
            self.layouts |= {"a": "row", "b": "col"}
        self.target = "sm_90a" if self.wgmma else self.pick("sm_80", "sm_80", "sm_86", "sm_89", "sm_90a")
        if self.input in ("e4m3", "e5m2"):
            self.target = self.target if self.wgmma else self.pick("sm_89", "sm_90a")
        self.promotes = self.input in ("e4m3", "e5m2") and self.chance(0.4)  # sums are added up in f32
        # D in column order is computed as D^T = B^T A^T: the kernel's A is b, and an operand's order turns around. The
        # other way is a choice, too: the kernel then writes columns.
        self.turned = self.wgmma and self.chance(0.2)
        self.swapped = (self.layouts["d"] == "col") != self.turned
        first, second = ("b", "a") if self.swapped else ("a", "b")
        # Lanes turn the kernel's A where a spec says so.
        self.inside = first if self.turns and self.input == "tf32" and self.chance(0.6) else None
        if self.inside:
            self.layouts[first] = "row" if first == "b" else "col"
        self.k_major_a = not self.inside and (self.turns or (self.layouts[first] == "row") != self.swapped)
        self.k_major_b = self.turns or (self.layouts[second] == "col") != self.swapped

    # ---- how: tiles that fit registers and shared memory

    def wgmma_tile(self):
        self.shifts = self.family == "cooperative" and not self.other and self.chance(0.15)  # one operand, if all else allows it
        self.swizzle = "128B" if self.shifts or self.inside else self.pick("128B", "128B", "128B", "64B", "32B", "none")
        depth = SPAN[self.swizzle] * 8 // self.bits
        line = 1024 // self.bits  # elements of 128 bytes
        # A line of a tile is whole swizzled rows, also where the tile is narrower.
        whole = lambda extent: -(-extent // depth) * depth
        self.staged = self.chance(0.5 if self.turned else 0.25)
        self.slices = self.pick(2, 2, 3, 4, 8) if self.family == "cooperative" and self.chance(0.35) else 1
        while True:
            m = self.pick(64, 128, 128) if self.family != "cooperative" else self.pick(64, 128, 192, 256)
            n = self.pick(8, 16, 24, 40, 64, 72, 96, 104, 128, 136, 176, 192, 256)
            if self.input in INTEGERS and n > 32:  # whole sixteens (PTX ISA 9.7.15.2)
                n = -(-n // 16) * 16
            k = depth * self.pick(1, 1, 2) if depth < line else line * self.pick(1, 1, 1, 2)
            # Sums of a warpgroup: what the schedule leaves registers for.
            groups = {"cooperative": {256: 2}.get(m, m // 64), "pingpong": 1, "pipelined": m // 64}[self.family]
            limit = {"cooperative": 128 * 128, "pingpong": 128 * (184 if self.staged else 192),
                     "pipelined": 64 * 256}[self.family]
            if self.family == "cooperative" and m == 192:
                limit = 64 * 192  # three consumers start with 128 registers a thread
            stage = self.bits * k // 8 * ((m if self.k_major_a else whole(m)) + (n if self.k_major_b else whole(n)))
            # Each warp has buffers of 2048 bytes: two, or as many as the spec says where TMA stores D.
            self.buffer = 8192 * (2 if self.family == "pingpong" else groups)
            store = 2 * self.buffer if self.staged else 0
            # Slots for the sums of slices, of an owner's share each: beside the stages or, if large, in their place.
            owners = max(count for count in range(1, self.slices + 1) if n // 8 % count == 0)
            sums = m * n * BITS[self.accumulator] // 8 // owners * self.slices if self.slices > 1 else 0
            if self.slices > 1 and owners == 1:  # one CTA scales the sums of all, with registers of its own for it
                limit = 40 * 128 if self.slices > 6 else 64 * 128 if self.slices > 2 or groups > 2 else min(limit, 120 * 128)
            if self.promotes:  # registers for what a stage sums up to, too
                limit //= 2
            if self.inside:  # and for A: four of 64 rows and 32 bytes of k
                limit -= 128 * 4 * max(1, m // 64 // (1 if self.family == "pingpong" else groups)) * (k * self.bits // 256)
            most = (WGMMA_SHARED - store - (sums if sums <= 32768 else 0)) // stage
            if sums > WGMMA_SHARED - store:
                continue
            if m * n // groups <= (min(limit, 112 * 128 // groups) if self.shifts else limit) and most >= 2:
                break
        self.block, self.stages = (m, n, k), self.random.randint(2, min(15 if self.slices > 1 else 8, most))
        # Half a tile is stored at a time: warpgroups of 128 rows, whose buffers have room.
        self.halves = (self.family == "cooperative" and m in (128, 256) and n <= 128 and self.slices == 1
                       and not self.turned and not self.staged and not self.shifts and not self.inside
                       and self.input not in INTEGERS
                       and not self.promotes and self.chance(0.5) and self.stages * stage + m // 128 * 16384 <= WGMMA_SHARED)
        if self.halves:
            self.d_type = self.pick("f16", "bf16")
            self.accumulator = "f32"
        self.room, self.stage = WGMMA_SHARED - store - (sums if sums <= 32768 else 0) - self.stages * stage, stage
        self.cluster = 1, 1
        if self.family != "pipelined" and not self.shifts and self.chance(0.4):
            self.cluster = self.pick((2, 1), (1, 2), (2, 2), (4, 1), (4, 2), (2, 4))
            if self.cluster[0] * self.cluster[1] * self.slices > 8:
                self.cluster = (2, 1) if self.slices <= 4 else (1, 1)

    def mma_tile(self):
        self.wmma = self.input in WMMA and not self.floats and self.chance(0.35)
        self.swizzle = self.pick(*(("padded", "padded", "none", "blocked") if self.wmma else
                                   ("xor", "xor", "xor", "padded", "none", "blocked")))
        shapes = [shape for shape in SHAPES[self.input]
                  if self.target == "sm_90a" or self.input != "f64" or shape[0] == 8]
        if self.wmma:
            shapes = WMMA[self.input]
        self.staged = self.wmma or self.chance(0.25)
        self.shape, self.open_shape = shapes[0] if self.chance(0.5) else self.pick(*shapes), shapes[0]
        step_m, step_n = self.shape[:2]
        if self.wmma and self.swizzle == "blocked" and max(step_m, step_n) > 16:
            self.swizzle = "padded"  # blocks are 16 x 16
        depths = [bytes * 8 // self.bits for bytes in (32, 64, 64, 128)]
        while True:
            warp = self.pick((16, 16), (16, 32), (32, 16), (32, 32), (64, 32), (32, 64), (64, 64),
                             (step_m, step_n), (3 * step_m, step_n), (step_m, 5 * step_n))
            warps = self.pick((1, 1), (1, 2), (2, 1), (2, 2), (2, 2), (4, 2), (2, 4), (1, 4))
            m, n, k = warp[0] * warps[0], warp[1] * warps[1], self.pick(*depths)
            line = lambda elements, lines: shared_line(elements, self.bits, self.swizzle) * lines
            stage = line(*((k, m) if self.k_major_a else (m, k))) + line(*((k, n) if self.k_major_b else (n, k)))
            most = SHARED[self.target] // stage
            sums = warp[0] * warp[1] * BITS[self.accumulator] // 1024
            limit = min(256, 65536 // (32 * warps[0] * warps[1])) * 5 // 8
            if self.input in ("e4m3", "e5m2") and (self.promotes or self.target == "sm_90a"):
                limit = min(limit, 48 if self.promotes and not self.k_major_b else 64)
            # What the end of a tile takes: lines of sums with eight more elements, or the sums of a slice.
            store = max(m * (n + 8), n * (m + 8)) * BITS[self.accumulator] // 8
            whole = warp[0] % step_m == 0 and warp[1] % step_n == 0 and k % self.shape[2] == 0
            if self.swizzle == "blocked":
                whole &= warp[0] % 16 == 0 and warp[1] % 16 == 0 and k // self.per_byte % 16 == 0
                whole &= not self.wmma or max(step_m, step_n) <= 16
                whole &= sums <= 64  # ptxas spills a few bytes where a warp of blocks fills its registers
            whole &= not self.wmma or max(warp) <= 64  # the same
            whole &= self.input != "f64" or sums < 128  # pairs of registers: addresses need more than what 128 leave
            if max(m, n) <= 256 and most >= 2 and sums <= min(128, limit) and whole and store <= SHARED[self.target]:
                break
        # Two warps to a warp tile, each for a slice of k: whole instructions, 16 bytes, 16 elements.
        slice_step = max(16, self.shape[2], 128 // self.bits)
        self.sliced = (self.chance(0.25) and k % (2 * slice_step) == 0 and warps[0] * warps[1] <= 4 and sums <= 64)
        self.block, self.warp = (m, n, k), (*warp, k // 2 if self.sliced else k)
        self.stages = 1 if self.family == "ld" else self.random.randint(2, min(8, most))
        self.fragments = {}
        for name, k_major in ("a", self.k_major_a), ("b", self.k_major_b):
            if self.chance(0.3) and not self.wmma:  # loads can always be asked for, ldmatrix where it fits
                self.fragments["ab"["ba".index(name)] if self.swapped else name] = "lds"
        if self.chance(0.2):
            self.fragments["buffers"] = 1
        if self.chance(0.2):
            self.fragments["order"] = self.pick("snake", "plain")

    # ---- sizes: a few tiles, often cut

    def sizes(self):
        m, n, k = self.block
        tiles = [self.pick(1, 1, 2, 3), self.pick(1, 1, 2, 3), self.random.randint(1, self.stages + 3)]
        while math.prod(tiles) * m * n * k > MAX_PRODUCTS and max(tiles) > 1:
            largest = tiles.index(max(tiles))
            tiles[largest] -= 1
        extents = [self.extent(count, size) for count, size in zip(tiles, self.block)]
        if self.swapped:
            extents[0], extents[1] = extents[1], extents[0]
        extents[2] = -(-extents[2] // self.per_byte) * self.per_byte
        self.size = dict(zip("mnk", extents))
        if not self.wgmma and self.chance(0.06):
            self.size[self.pick("m", "n", "k", "k")] = 0
        self.dynamic = {name for name in "mnk" if self.chance(0.2)} if not (self.wgmma and self.shifts) else set()
        if self.halves:  # of a tile that TMA stores, and of several steps
            line = "n" if self.layouts["d"] == "row" else "m"
            self.dynamic -= {line, "k"}
            self.size[line] = -(-self.size[line] // 8) * 8
            self.size["k"] += 2 * self.block[2]
        for name in sorted(self.dynamic):
            self.arguments += [f"--{name}", str(self.size[name])]
        if self.dynamic and self.chance(0.15):  # TMA kernels too must do without k or m when they come at launch
            name = self.pick(*sorted(self.dynamic))
            self.size[name] = 0
            self.arguments[self.arguments.index(f"--{name}") + 1] = "0"

    def extent(self, count, size):
        if self.chance(0.3):
            return count * size
        extent = (count - 1) * size + self.random.randint(1, size)
        return -(-extent // 8) * 8 if self.wgmma and self.chance(0.8) else extent

    def alignment(self):
        """Leading dimensions, pointers. Static operands of TMA have pitches of 16 bytes, or are repacked; all others may
        be anything."""
        self.ld, self.align = {}, {}
        self.repack = self.wgmma and (self.shifts or self.turns or self.chance(0.3))
        rows, columns = {"a": "m", "b": "k", "c": "m", "d": "m"}, {"a": "k", "b": "n", "c": "n", "d": "n"}
        self.layouts["c"] = self.layouts["d"]
        for name in "abcd":
            along = (columns if self.layouts[name] == "row" else rows)[name]
            if along in self.dynamic:
                continue
            least = max(1, self.size[along])
            if self.wgmma and name in "ab" and (not self.repack or name == self.inside):
                unit = 128 // self.bits
                ld = -(-least // unit) * unit + self.pick(0, 0, 0, unit, 3 * unit)
            elif self.family == "cp_async" and name in "ab":  # rows of whole 4 bytes
                unit = max(1, 32 // self.bits)
                ld = -(-least // unit) * unit + self.pick(0, 0, 0, unit, 3 * unit, 8 * unit)
            elif name in "ab":
                ld = -(-least // self.per_byte) * self.per_byte + self.pick(0, 0, 0, 1, 7, 8) * self.per_byte
            else:
                ld = least + self.pick(0, 0, 0, 1, 7, 8)
            if name == "d" and self.wgmma and self.staged and not self.repack:
                ld = -(-ld // 8) * 8
            if ld != least:
                self.ld[name] = ld
        element = max(BITS[kind] // 8 for kind in (self.input, self.d_type, self.c_type()))
        if self.chance(0.15):
            least = element if self.repack or not self.wgmma and self.family != "cp_async" else max(4, element)
            misalign = self.pick(*[bytes for bytes in (1, 2, 4, 8) if bytes >= least])
            self.arguments += ["--misalign", str(misalign)]
            if (not self.wgmma or self.repack) and not self.inside and self.chance(0.5):
                self.align = {name: misalign for name in "abcd"}

    def shift(self):
        """The operand whose lines a warpgroup shifts into place, where one may; else None. Its stages are longer, and its
        tiles have three of their own."""
        m, n, k = self.block
        if "--misalign" in self.arguments:
            return None
        names = ("b", "a") if self.swapped else ("a", "b")
        fitting = []
        for name, extent, k_major in zip(names, (m, n), (self.k_major_a, self.k_major_b)):
            lines, length, all_lines = (extent, k, "m" if name == "a" else "n") if k_major else (k, extent, "k")
            if lines % 64 == 0 and length % 64 == 0 and length <= 192 and self.size[all_lines] >= 8:
                fitting.append((name, lines, extent))
        if not fitting:
            return None
        name, lines, extent = self.pick(*fitting)
        needed = lambda stages: 16 * lines * stages + 3 * (2 * k * extent + 16)
        while self.stages > 2 and self.room < needed(self.stages):
            self.stages, self.room = self.stages - 1, self.room + self.stage
        if self.room < needed(self.stages):
            return None
        self.room -= needed(self.stages)
        return name

    def overlap(self):
        """Steps of k under which half a tile is stored, where a spec may have it; else None."""
        tma = "--misalign" not in self.arguments and self.ld.get("d", 8) % 8 == 0
        most = min(4, self.stages, -(-self.size["k"] // self.block[2]) - 2)
        return self.random.randint(1, most) if self.halves and tma and most >= 1 else None

    def buffers(self):
        """Buffers of each warp from which TMA stores D, where a spec may have them; else None."""
        line = "n" if self.layouts["d"] == "row" else "m"
        unit = 128 // BITS[self.d_type]  # 16 bytes, where lines start and end
        tma = (self.wgmma and not self.staged and self.beta == 0 and "--misalign" not in self.arguments
               and line not in self.dynamic and self.size[line] % unit == 0 and self.ld.get("d", unit) % unit == 0)
        most = min(8, self.room // self.buffer) if tma and not self.shifted else 0
        if most < 1 or not self.chance(0.5):
            return None
        count = self.random.randint(1, most)
        self.room -= count * self.buffer
        return count

    def c_type(self):
        if not hasattr(self, "c"):
            narrow = self.accumulator in ("f32", "f16") or self.floats
            self.c = self.pick(self.d_type, self.d_type, "f32", "bf16") if narrow else self.d_type
        return self.c

    def scales(self):
        self.alpha, self.beta = self.pick(1, 1, 1, 2, -1, 0.5, "dynamic"), self.pick(0, 0, 0, 1, -1, 2, 0.5, "dynamic")
        if self.halves:
            self.beta = 0
        if self.input in INTEGERS and not self.floats:  # whole numbers that the spec fixes
            self.alpha, self.beta = self.pick(1, 1, 1, 2, -3), self.pick(0, 0, 0, 1, -1, 5)
        if not self.wgmma and self.chance(0.05):
            self.alpha = 0
        for name, value in ("alpha", self.alpha), ("beta", self.beta):
            if value == "dynamic":
                self.arguments += [f"--{name}", str(self.pick(0, 1, 1, 2, -1))]

    # ---- the spec as the user writes it

    def assemble(self):
        spec = {"target": self.target, "problem": {name: "dynamic" if name in self.dynamic else self.size[name]
                                                   for name in "mnk"}}
        for name in "abcd":
            if name == "c" and self.beta == 0:
                continue
            kind = {"a": self.input, "b": self.input, "c": self.c_type(), "d": self.d_type}[name]
            operand = {"type": kind, "layout": self.layouts[name]}
            if name in self.ld:
                operand["ld"] = self.ld[name]
            if name in self.align:
                operand["align"] = self.align[name]
            if self.repack and name in "ab" and self.chance(0.4):  # else the planner's choice, where TMA needs it
                operand["repack"] = "on"
            if name in (self.shifted, self.inside):
                operand["repack"] = "inside"
            spec[name] = operand
        spec["accumulator"] = self.accumulator
        if self.promotes:
            spec["fast_accumulation"] = "off"
        if self.input == "b1" and self.chance(0.7):
            spec["bit_operation"] = self.pick("and", "xor")
        if self.alpha != 1:
            spec["alpha"] = self.alpha
        if self.beta != 0:
            spec["beta"] = self.beta
        if self.family == "auto":
            return spec
        user = lambda tile: [tile[1], tile[0], tile[2]] if self.swapped else list(tile)
        spec["tile"] = {"block": user(self.block)}
        if self.wgmma:
            if self.cluster != (1, 1) or (self.slices > 1 and self.chance(0.5)):
                spec["tile"]["cluster"] = user((*self.cluster, self.slices))
            elif self.slices > 1:
                spec["split"] = {"mode": "split_k", "slices": self.slices, "through": "cluster"}
            for name in "ab":
                if self.chance(0.15):
                    spec[name]["cache"] = self.pick("evict_first", "evict_last", "normal")
            if self.turned:
                spec["swap_operands"] = "on" if self.swapped else "off"
            spec |= {"instruction": "wgmma", "copy": "tma", "swizzle": self.swizzle}
            spec["pipeline"] = {"stages": self.stages, "schedule": self.family}
            if self.staged:
                spec["epilogue"] = {"store": "staged"}
        else:
            if self.chance(0.7) or self.sliced or self.wmma or self.swizzle == "blocked" or self.input == "f64":
                spec["tile"]["warp"] = user(self.warp)
            if self.shape != self.open_shape or self.chance(0.5):
                spec["tile"]["instruction"] = list(self.shape)
            spec |= {"instruction": "wmma" if self.wmma else "mma"} | ({"fragments": self.fragments} if self.fragments else {})
            spec |= {"copy": self.family, "swizzle": self.swizzle}
            if self.chance(0.2):
                spec["copy_bytes"] = self.pick(*[count for count in (1, 2, 4, 8, 16) if count >= max(
                    self.bits // 8, 4 if self.family == "cp_async" else 1)])
            if self.staged and (self.chance(0.7) or not self.wmma):
                spec["epilogue"] = {"store": "staged"}
            wide = self.accumulator == self.d_type == self.c_type() and self.d_type != "f16"
            if self.wmma and wide and self.beta != 0 and self.chance(0.5):
                spec["epilogue"] = {"store": "staged", "c": "staged"}
            spec["pipeline"] = {"stages": self.stages}
            if self.chance(0.15):
                spec["split"] = {"mode": "split_k", "slices": self.pick(2, 3, 4, 8)}
            elif self.chance(0.03):
                spec["split"] = {"mode": "stream_k"}
                spec["raster"] = {"persistent": "on"}
        if self.chance(0.3) and "raster" not in spec:
            spec["raster"] = {"order": self.pick("along_m", "along_n", "hilbert"), "group": self.pick(1, 2, 3, 8)}
            if spec["raster"]["order"] == "hilbert":
                spec["raster"]["group"] = self.pick(1, 2, 4, 8)
            if self.family not in ("pingpong", "pipelined") and not (self.wgmma and self.slices > 1):
                spec["raster"]["persistent"] = self.pick("on", "off")
        overlap, buffers = self.overlap(), self.buffers()
        if overlap is not None:
            spec["tile"]["warp"] = user((128, *self.block[1:]))
            spec["epilogue"] = {"store": "tma", "overlap": overlap}
            if buffers is not None:
                spec["epilogue"]["buffers"] = buffers
            return spec
        if buffers is not None:
            spec["epilogue"] = {"store": "tma", "buffers": buffers}
        if self.family in ("cooperative", "pingpong") and self.cluster == (1, 1) and self.slices == 1 and not self.shifted and (
                self.room >= 256 and self.chance(0.25)):  # the ring of tile numbers
            raster = spec.setdefault("raster", {})
            if raster.get("persistent") != "off":
                raster["scheduler"] = "dynamic"
        if self.family in ("cooperative", "pingpong") and self.stages > 2 and not self.promotes and not self.inside and self.chance(0.25):
            spec["pipeline"]["in_flight"] = self.pick(*range(1, min(self.stages, 3 if self.shifted else 4)))
        if self.wgmma and self.chance(0.25):
            dynamic = spec.get("raster", {}).get("scheduler") == "dynamic"
            spec["launch"] = {"dependent": "on", "trigger": self.pick("start", "end", *([] if dynamic else ["sums"]))}
        return spec
