"""The kernels that utils/mutate breaks: one of each family that gemmc emits, made small.

Small, so that a mutant takes a second: narrow tiles, few of them. Not too small: every pipeline wraps, more than once,
and at different steps of k in different tiles; every CTA takes several tiles (`sms`); edges are ragged in m, n and k
wherever the kernel has code for it. All sizes are fixed, so that a kernel has one problem to run, and what a proof of
equivalence says of it (equivalence.py) is said of every launch."""

WGMMA = "target: sm_90a\nproblem: {m: %d, n: %d, k: %d}\na: {type: %s, layout: %s}\nb: {type: %s, layout: %s}\n"
MMA = "target: sm_80\nproblem: {m: %d, n: %d, k: %d}\na: {type: %s, layout: %s}\nb: {type: %s, layout: %s}\n"


def wgmma(sizes, types, rest, sms=1):
    a, b = types.split()
    return WGMMA % (*sizes, *a.split("/"), *b.split("/")) + rest, [f"--sms={sms}"]


def mma(sizes, types, rest, *arguments):
    a, b = types.split()
    return MMA % (*sizes, *a.split("/"), *b.split("/")) + rest, ["--sms=1", *arguments]


TN, NN, NT = "bf16/row bf16/col", "f16/row f16/row", "f16/col f16/row"

# family -> (spec, arguments of `gemmc check`)
FAMILIES = {
    "cooperative": wgmma((200, 72, 264), TN, """d: {type: bf16}
tile: {block: [128, 40, 64], warp: [64, 40, 64]}
pipeline: {stages: 3, schedule: cooperative}
epilogue: {store: tma}
"""),
    # One tile along n, of which 16 columns are not there: all tiles are last ones, and the consumers clear what they miss.
    "edges": wgmma((136, 48, 264), TN, """d: {type: bf16}
tile: {block: [64, 64, 64]}
pipeline: {stages: 3, schedule: cooperative}
"""),
    "pingpong": wgmma((136, 96, 264), TN, """d: {type: bf16}
tile: {block: [64, 40, 64]}
pipeline: {stages: 3, schedule: pingpong}
epilogue: {store: tma}
"""),
    # D^T by TMA: a warpgroup's four warps meet before and after each of two chunks of a tile's columns.
    "turned": wgmma((200, 72, 264), TN, """d: {type: bf16}
tile: {block: [72, 64, 64]}
swap_operands: on
pipeline: {stages: 3, schedule: cooperative}
epilogue: {store: tma}
"""),
    "pingpong_pair": wgmma((200, 104, 264), NN, """d: {type: f32}
tile: {block: [64, 64, 64], cluster: [2, 1, 1]}
pipeline: {stages: 2, schedule: pingpong}
epilogue: {store: direct}
""", 2),
    "multicast_2x2": wgmma((200, 120, 136), TN, """d: {type: bf16}
tile: {block: [64, 32, 64], cluster: [2, 2, 1]}
pipeline: {stages: 2, schedule: cooperative}
""", 4),
    "three_consumers": wgmma((200, 40, 200), TN, """d: {type: f32}
tile: {block: [192, 24, 64], warp: [64, 24, 64]}
pipeline: {stages: 3, schedule: cooperative}
"""),
    "staged_store": wgmma((136, 72, 136), TN, """d: {type: bf16}
tile: {block: [64, 32, 64], warp: [64, 16, 64]}
pipeline: {stages: 2, schedule: cooperative}
epilogue: {store: staged}
"""),
    "direct_store": wgmma((136, 72, 200), NT, """c: {type: f32}
d: {type: bf16}
alpha: 2
beta: -1
tile: {block: [64, 64, 64]}
pipeline: {stages: 2, schedule: cooperative}
epilogue: {store: direct}
"""),
    "a_in_registers": wgmma((136, 72, 264), "f16/row f16/col", """d: {type: f16}
accumulator: f32
tile: {block: [128, 40, 64], warp: [64, 40, 64]}
fragments: {a: ldmatrix}
pipeline: {stages: 3, schedule: cooperative}
"""),
    "split_k": wgmma((136, 72, 520), "f16/row f16/col", """d: {type: f16}
tile: {block: [128, 40, 64], warp: [64, 40, 64]}
pipeline: {stages: 2, schedule: cooperative}
split: {mode: split_k, slices: 2}
""", 3),
    "stream_k": wgmma((200, 112, 264), "f16/row f16/col", """d: {type: f16}
tile: {block: [128, 40, 64], warp: [64, 40, 64]}
pipeline: {stages: 2, schedule: cooperative}
raster: {persistent: on}
split: {mode: stream_k}
""", 4),
    # Fewer stages than slots in the ring of tile numbers, else one guards the other.
    "dynamic_tiles": wgmma((200, 120, 136), TN, """d: {type: bf16}
tile: {block: [64, 40, 64]}
pipeline: {stages: 2, schedule: cooperative}
raster: {scheduler: dynamic}
"""),
    "c_tma": wgmma((200, 72, 136), TN, """c: {type: bf16}
d: {type: bf16}
alpha: 2
beta: -1
tile: {block: [128, 40, 64], warp: [64, 40, 64]}
pipeline: {stages: 2, schedule: cooperative}
epilogue: {store: tma, c: tma}
"""),
    # Two kernels that overlap. Neighbouring tiles of a row are other CTAs', and all tiles of a warp leave through one buffer:
    # of two, each would be kept off by the barrier behind the other's writes.
    "repacked": wgmma((136, 81, 137), "bf16/row bf16/col", """d: {type: bf16}
tile: {block: [64, 32, 64]}
pipeline: {stages: 2, schedule: cooperative}
launch: {dependent: on}
""", 2),
    # A warpgroup shifts B's columns into place: two rings, one behind the other. The lines have more stages than the tiles: with
    # fewer, who has waited for lines would know that a tile's readers are done.
    "shifted": ("""target: sm_90a
problem: {m: 72, n: 136, k: 333}
a: {type: bf16, layout: row, ld: 336}
b: {type: bf16, layout: col, repack: inside}
d: {type: bf16}
tile: {block: [64, 64, 64]}
pipeline: {stages: 5, schedule: cooperative}
""", ["--sms=1"]),
    "single_role": wgmma((136, 72, 456), TN, """d: {type: f32}
tile: {block: [128, 72, 64], warp: [64, 72, 64]}
pipeline: {stages: 3, schedule: pipelined}
"""),
    "swizzle_64b": wgmma((72, 120, 232), NN, """d: {type: f16}
accumulator: f16
tile: {block: [64, 64, 32], warp: [64, 32, 32]}
swizzle: 64B
pipeline: {stages: 4, schedule: cooperative}
"""),
    "d_col": wgmma((72, 136, 136), TN, """d: {type: f32, layout: col}
tile: {block: [40, 64, 64]}
pipeline: {stages: 2, schedule: cooperative}
"""),
    "mma_multistage": mma((72, 72, 168), "f16/row f16/col", """d: {type: f16}
tile: {block: [64, 64, 32], warp: [32, 32, 32]}
instruction: mma
copy: cp_async
pipeline: {stages: 4}
"""),
    "mma_nt": mma((128, 64, 168), NT, """d: {type: f32}
tile: {block: [64, 32, 32], warp: [32, 16, 32]}
instruction: mma
copy: cp_async
pipeline: {stages: 3}
"""),
    "mma_crosswise": mma((72, 40, 168), "f16/row f16/col", """d: {type: f16}
tile: {block: [64, 32, 32], warp: [32, 16, 16], instruction: [16, 8, 16]}
instruction: mma
copy: cp_async
fragments: {a: lds, b: lds, buffers: 1, order: plain}
pipeline: {stages: 4}
swizzle: xor
epilogue: {store: staged}
"""),
    "mma_edges": mma((67, 37, 77), "bf16/row bf16/col", """c: {type: bf16}
d: {type: f32}
beta: 0.5
tile: {block: [64, 32, 32], warp: [32, 16, 32]}
instruction: mma
copy: ld
pipeline: {stages: 1}
"""),
    "mma_beta_at_launch": mma((72, 40, 72), "f16/row f16/col", """c: {type: f16}
d: {type: f16}
alpha: dynamic
beta: dynamic
tile: {block: [64, 32, 32], warp: [32, 16, 32]}
instruction: mma
copy: cp_async
pipeline: {stages: 2}
""", "--beta=0", "--alpha=1"),
    "mma_d_col": mma((40, 72, 104), TN, """d: {type: f32, layout: col}
tile: {block: [32, 64, 32], warp: [16, 32, 32]}
instruction: mma
copy: cp_async
pipeline: {stages: 3}
"""),
    "mma_f64": mma((40, 36, 54), "f64/row f64/col", """d: {type: f64}
tile: {block: [32, 32, 16], instruction: [8, 8, 4]}
instruction: mma
copy: cp_async
pipeline: {stages: 2}
"""),
    "mma_s8": mma((72, 40, 208), "s8/row s8/col", """d: {type: s32}
tile: {block: [64, 32, 64], instruction: [16, 8, 32]}
instruction: mma
copy: cp_async
pipeline: {stages: 2}
"""),
    "wmma_padded": mma((72, 40, 72), "f16/row f16/row", """d: {type: f16}
accumulator: f16
tile: {block: [64, 32, 16], warp: [32, 16, 16], instruction: [16, 16, 16]}
instruction: wmma
copy: ld
copy_bytes: 16
pipeline: {stages: 1}
swizzle: padded
padding: 16
epilogue: {store: staged}
"""),
    "wmma_blocked": mma((72, 40, 168), "f16/row f16/col", """d: {type: f16}
accumulator: f32
tile: {block: [64, 32, 32], warp: [32, 16, 32], instruction: [16, 16, 16]}
instruction: wmma
copy: cp_async
pipeline: {stages: 3}
swizzle: blocked
epilogue: {store: staged}
"""),
    "wmma_addmm": mma((72, 40, 72), "f16/row f16/col", """c: {type: f32}
d: {type: f32}
accumulator: f32
alpha: 2
beta: -1
tile: {block: [64, 32, 32], warp: [16, 32, 32], instruction: [16, 16, 16]}
instruction: wmma
copy: ld
copy_bytes: 16
pipeline: {stages: 1}
swizzle: padded
padding: 32
raster: {persistent: on}
epilogue: {store: staged, c: staged}
"""),
    # Slices of 7, 6 and 6 steps, whose sums meet: 16, 16 and 8 columns for each CTA.
    "cluster_sums": wgmma((136, 56, 1160), TN, """d: {type: f32}
tile: {block: [64, 40, 64], cluster: [1, 1, 3]}
pipeline: {stages: 2, schedule: cooperative}
"""),
    # Two CTAs with three tiles of eleven steps: the stages that a tile's end releases are used again, and the slots wrap anywhere.
    "in_flight": wgmma((136, 72, 696), TN, """d: {type: bf16}
tile: {block: [64, 40, 64]}
pipeline: {stages: 4, schedule: cooperative, in_flight: 2}
launch: {dependent: on, trigger: sums}
""", 2),
    # Four tiles of one CTA, eight steps each: halves that are stored under the other half's products, two steps at their start.
    "overlap": wgmma((200, 112, 504), TN, """d: {type: bf16}
tile: {block: [128, 56, 64]}
pipeline: {stages: 3, schedule: cooperative}
epilogue: {overlap: 2}
"""),
}
