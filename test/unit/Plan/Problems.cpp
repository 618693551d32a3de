// Every message of the planner, with its place; every fix-it, applied.
#include "Specs.h"
#include <set>

using namespace gemmc;
using namespace gemmc::test;

namespace {
struct Case {
  const char *yaml;     ///< After the problem's line, so its first line is 2.
  const char *problems; ///< `row line:column` of each, in the order of their reports.
};
constexpr const char *cube256 = "problem: {m: 256, n: 256, k: 256}\n";

// Columns are those of the wrong value, or of the wrong element of a list.
const Case cases[] = {
    {"a: {type: f16}\nb: {type: bf16}", "plan_types_differ 3:11"},
    {"a: {type: bf16}\naccumulator: f16", "plan_accumulator_type 3:14"},
    {"d: {type: s32}", "plan_type_unsupported 2:11"},
    {"a: {ld: 255}", "plan_ld_small 2:9"},
    {"d: {type: f32, align: 2}", "plan_align_small 2:23"},
    // Integers, bits, packed elements.
    // Too many stages of a tile that is one, and not a warp tile that nobody asked for.
    {"tile: {block: [64, 64, 64]}\npipeline: {stages: 15}", "plan_shared 3:20"},
    {"a: {type: s8}\nalpha: 0.5", "plan_scale_integer 3:8"},
    {"a: {type: u4}\nbeta: dynamic", "plan_scale_integer 3:7"},
    {"bit_operation: xor", "plan_bit_operation 2:16"},
    {"a: {type: b1}\nbit_operation: none", "plan_bit_operation 3:16"},
    {"a: {type: s4, layout: col}", "plan_packed_layout 2:23"},
    {"b: {type: b1, layout: row}", "plan_packed_layout 2:23"},
    {"a: {type: b1, ld: 260}", "plan_packed_size 2:19"},
    {"a: {type: s8}\nd: {type: f64}", "plan_type_unsupported 3:11"},
    {"instruction: wmma\na: {type: s8}\nd: {type: f32}", "plan_type_unsupported 4:11"},
    {"a: {type: s8}\nd: {type: f32}\nc: {type: s32}\nbeta: 0.5", "plan_type_unsupported 4:11"},
    {"a: {type: f64}\naccumulator: f32", "plan_accumulator_type 3:14"},
    // The matrix instruction and its fragments.
    {"instruction: mma\ntile: {instruction: [16, 8, 4]}", "plan_matrix_shape 3:21"},
    {"target: sm_80\na: {type: f64}\ntile: {instruction: [16, 8, 8]}", "plan_matrix_shape 4:21"},
    {"instruction: wgmma\ntile: {block: [128, 128, 64], instruction: [64, 32, 16]}", "plan_matrix_shape 3:44"},
    {"tile: {instruction: [64, 100, 16]}", "plan_matrix_shape 2:21"},
    {"tile: {instruction: [64, 128, 16], warp: [64, 64, 64]}", "plan_matrix_shape 2:21"},
    {"instruction: mma\nfragments: {a: descriptor}", "plan_fragment_family 3:16"},
    {"instruction: wgmma\nfragments: {b: lds}", "plan_fragment_family 3:16"},
    {"instruction: wgmma\nfragments: {order: snake}", "plan_fragment_family 3:20"},
    {"instruction: wgmma\nfragments: {buffers: 2}", "plan_fragment_family 3:22"},
    {"a: {type: f64}\nfragments: {a: ldmatrix}", "plan_fragment_ldmatrix 3:16"},
    {"b: {type: s8, layout: row}\nfragments: {b: ldmatrix}", "plan_fragment_ldmatrix 3:16"},
    {"a: {type: f16}\ntile: {instruction: [8, 8, 4]}\nfragments: {a: ldmatrix}", "plan_fragment_ldmatrix 4:16"},
    {"instruction: mma\npipeline: {stages: 2}\nfragments: {buffers: 2}", "plan_fragment_buffers 4:22"},
    {"instruction: mma\ntile: {block: [64, 64, 16]}\nfragments: {buffers: 2}", "plan_fragment_buffers 4:22"},
    {"a: {type: s8}\ntile: {block: [64, 64, 16]}", "plan_block_range 3:24"},
    {"a: {type: f64}\ntile: {block: [64, 64, 12]}", "plan_block_k 3:24"},
    // One family, one target.
    {"target: sm_86\na: {type: e4m3}", "plan_no_instruction 3:11"},
    {"instruction: wmma\nb: {type: e5m2}", "plan_no_instruction 2:14"},
    {"a: {type: e4m3}\nfragments: {a: wmma_load}", "plan_no_instruction 3:16"},
    {"a: {type: e4m3}\nfragments: {b: wmma_load}", "plan_no_instruction 3:16"},
    {"a: {type: e4m3}\nb: {layout: row, repack: off}\ninstruction: wgmma", "plan_wgmma_lines 3:13"},
    {"fast_accumulation: off", "plan_fast_accumulation 2:20"},
    {"a: {type: e4m3}\nb: {layout: col}\nfast_accumulation: off\npipeline: {in_flight: 2}", "plan_in_flight 5:23"},
    {"a: {type: e4m3, layout: col, repack: inside}\nb: {layout: col}", "plan_repack 2:38"},
    {"a: {type: tf32, layout: col, ld: 257, repack: inside}\nb: {layout: col}", "plan_repack 2:47"},
    {"a: {type: tf32, layout: col, repack: inside}\nb: {layout: col}\nswap_operands: on", "plan_repack 2:38"},
    {"a: {type: tf32, layout: col, repack: inside}\nb: {layout: row, repack: inside}", "plan_repack 2:38"},
    {"a: {type: tf32, layout: col, repack: inside}\nb: {layout: col}\nfragments: {a: ldmatrix}", "plan_repack 2:38"},
    {"a: {type: tf32, layout: col, repack: inside}\nb: {layout: col}\nswizzle: none", "plan_repack 2:38"},
    {"a: {type: f64}\ninstruction: wgmma", "plan_wgmma_type 3:14"},
    {"a: {type: e4m3}\naccumulator: f16", "plan_accumulator_type 3:14"},
    {"a: {type: e4m3}\nb: {layout: col}\ntile: {block: [128, 128, 48]}", "plan_block_multiple 4:26"},
    {"a: {type: tf32}\nb: {layout: col}\ninstruction: wgmma\ntile: {instruction: [64, 128, 16]}",
     "plan_matrix_shape 5:21"},
    {"target: sm_80\ninstruction: wgmma", "plan_needs_sm90a 3:14"},
    {"target: sm_89\npipeline: {schedule: pingpong}", "plan_needs_sm90a 3:22"},
    {"target: sm_86\ntile: {cluster: [2, 1, 1]}", "plan_needs_sm90a 3:17"},
    {"target: sm_80\nraster: {scheduler: dynamic}\nepilogue: {overlap: 1}",
     "plan_needs_sm90a 4:21, plan_needs_sm90a 3:21"},
    {"target: sm_80\nswizzle: xor\nepilogue: {c: tma}", "plan_needs_sm90a 4:15"}, // and not that xor is none of wgmma's
    {"target: sm_80\nlaunch: {dependent: on}", "plan_needs_sm90a 3:21"},
    {"launch: {dependent: off, prefetch: 4}", "plan_no_prefetch 2:36"},
    {"pipeline: {schedule: pipelined}\nlaunch: {dependent: on, prefetch: 4}", "plan_no_prefetch 3:35"},
    {"split: {mode: stream_k}\nlaunch: {dependent: on, prefetch: 4}", "plan_no_prefetch 3:35"},
    {"a: {repack: on}\nlaunch: {prefetch: 4}", "plan_no_prefetch 3:20"},
    {"launch: {dependent: off, trigger: end}", "plan_trigger 2:35"},
    {"raster: {scheduler: dynamic}\nlaunch: {dependent: on, trigger: sums}", "plan_trigger 3:34"},
    {"split: {mode: stream_k}\nlaunch: {dependent: on, trigger: sums}", "plan_trigger 3:34"},
    {"pipeline: {schedule: pipelined, in_flight: 2}", "plan_in_flight 2:44"},
    {"pipeline: {stages: 3, in_flight: 3}", "plan_in_flight 2:34"},
    {"fragments: {a: ldmatrix}\npipeline: {in_flight: 2}", "plan_in_flight 3:23"},
    {"pipeline: {schedule: pingpong}\nepilogue: {overlap: 2}", "plan_overlap 3:21"},
    {"epilogue: {store: direct, overlap: 2}", "plan_overlap 2:36"},
    {"d: {type: f32}\nepilogue: {overlap: 1}", "plan_overlap 3:21"},
    {"beta: 1\nepilogue: {overlap: 1}", "plan_overlap 3:21"},
    {"split: {mode: stream_k}\nepilogue: {overlap: 1}", "plan_overlap 3:21"},
    {"tile: {block: [128, 256, 64], warp: [64, 256, 64]}\nepilogue: {overlap: 1}", "plan_overlap 3:21"},
    {"raster: {scheduler: dynamic}\nepilogue: {overlap: 1}", "plan_overlap 3:21"},
    {"fragments: {a: ldmatrix}\nepilogue: {overlap: 1}", "plan_overlap 3:21"},
    {"pipeline: {in_flight: 2}\nepilogue: {overlap: 1}", "plan_overlap 3:21"},
    {"pipeline: {stages: 2}\nepilogue: {overlap: 3}", "plan_overlap 3:21"},
    {"instruction: wmma\nepilogue: {store: direct}", "plan_store_direct 3:19"},
    {"instruction: wmma\nswizzle: xor", "plan_swizzle_family 3:10"},
    {"instruction: wmma\nfragments: {a: ldmatrix}", "plan_fragment_family 3:16"},
    {"instruction: wmma\ntile: {instruction: [16, 8, 16]}", "plan_matrix_shape 3:21"},
    {"instruction: wmma\nswizzle: blocked\ntile: {instruction: [32, 8, 16]}", "plan_swizzle_blocked 3:10"},
    {"instruction: mma\nswizzle: blocked\ntile: {block: [64, 80, 32], warp: [32, 40, 32]}",
     "plan_swizzle_blocked 3:10"},
    {"instruction: mma\nswizzle: padded\npadding: 24", "plan_padding 4:10"},
    {"swizzle: xor\npadding: 16", "plan_padding 3:10"},
    {"copy: cp_async\ncopy_bytes: 2", "plan_copy_bytes 3:13"},
    {"copy: ld\ncopy_bytes: 1", "plan_copy_bytes 3:13"},
    {"instruction: wgmma\ncopy_bytes: 8", "plan_copy_bytes 3:13"},
    {"instruction: mma\nbeta: 1\nepilogue: {c: staged}", "plan_c_staged 4:15"},
    {"instruction: wmma\nepilogue: {c: staged}", "plan_c_staged 3:15"},
    {"instruction: wmma\nbeta: 1\nd: {type: bf16}\nepilogue: {c: staged}", "plan_c_staged 5:15"},
    {"instruction: mma\ncopy: tma", "plan_copy_family 3:7"},
    {"instruction: wgmma\ncopy: cp_async", "plan_copy_family 3:7"},
    {"instruction: mma\npipeline: {schedule: cooperative}", "plan_schedule_family 3:22"},
    {"instruction: mma\nswizzle: 128B", "plan_swizzle_family 3:10"},
    {"instruction: wgmma\nswizzle: xor", "plan_swizzle_family 3:10"},
    // What TMA and cp.async cannot read.
    {"copy: tma\na: {align: 8, repack: off}", "plan_tma_base 3:12"},
    {"copy: tma\nb: {ld: 257, repack: off}", "plan_tma_pitch 3:9"},
    {"copy: tma\nalpha: 0", "plan_tma_alpha 3:8"},
    {"copy: cp_async\na: {align: 2}", "plan_cp_async_align 2:7"},
    // Tiles.
    {"tile: {block: [128, 520, 64]}", "plan_block_range 2:21"},
    {"b: {layout: col}\ntile: {block: [64, 264, 64]}", "plan_block_multiple 3:20"},
    {"tile: {block: [100, 64, 64]}", "plan_block_multiple 2:16"},
    {"tile: {block: [128, 100, 64]}", "plan_block_multiple 2:21"},
    {"tile: {block: [128, 128, 72]}", "plan_block_multiple 2:26"},
    {"instruction: mma\ntile: {block: [40, 64, 32]}", "plan_block_multiple 3:16"},
    {"instruction: mma\ntile: {block: [64, 64, 48]}", "plan_block_k 3:24"},
    {"instruction: mma\ntile: {block: [64, 64, 32], warp: [8, 32, 32]}", "plan_warp_range 3:36"},
    {"instruction: mma\ntile: {block: [80, 64, 32], warp: [40, 32, 32]}", "plan_warp_multiple 3:36"},
    {"instruction: mma\ntile: {block: [64, 64, 32], warp: [48, 32, 32]}", "plan_warp_divides 3:36"},
    {"instruction: wgmma\ntile: {block: [128, 128, 64], warp: [64, 128, 32]}", "plan_warp_k 3:47"},
    {"instruction: mma\ntile: {block: [64, 64, 64], warp: [32, 32, 24]}", "plan_warp_slice 3:44"},
    {"instruction: mma\ntile: {block: [64, 64, 32], warp: [32, 32, 64]}", "plan_warp_slice 3:44"},
    {"instruction: mma\ntile: {block: [256, 256, 32], warp: [32, 32, 32]}", "plan_threads 3:37"},
    {"instruction: wgmma\ntile: {block: [128, 128, 64], warp: [64, 64, 64]}", "plan_warp_split 3:37"},
    {"instruction: wgmma\ntile: {block: [256, 64, 64], warp: [64, 64, 64]}", "plan_warpgroups 3:36"},
    {"pipeline: {schedule: pingpong}\ntile: {block: [128, 64, 64], warp: [64, 64, 64]}", "plan_warp_pingpong 3:36"},
    {"tile: {cluster: [3, 1, 1]}", "plan_cluster_size 2:18"},
    {"tile: {cluster: [1, 1, 9]}\ninstruction: wgmma", "plan_cluster_size 2:24"},
    {"tile: {cluster: [4, 4, 1]}", "plan_cluster_count 2:17"},
    {"tile: {cluster: [2, 1, 1]}\npipeline: {schedule: pipelined}", "plan_cluster_schedule 2:17"},
    // Budgets.
    {"instruction: wgmma\ntile: {block: [128, 256, 64], warp: [128, 256, 64]}", "plan_registers 3:37"},
    {"instruction: mma\ntile: {block: [128, 128, 32], warp: [128, 64, 32]}", "plan_registers 3:37"},
    // What ptxas 13 spills: C by TMA beside three blocks of rows, in f32 beside an odd number of eight columns.
    {"b: {layout: col}\nbeta: 1\nepilogue: {c: tma}\ntile: {block: [192, 208, 64], warp: [192, 104, 64]}",
     "plan_registers 5:37"},
    {"b: {layout: col}\nbeta: 1\nd: {type: f32}\nepilogue: {c: tma}\n"
     "tile: {block: [128, 240, 64], warp: [128, 120, 64]}",
     "plan_registers 6:37"},
    {"tile: {block: [128, 184, 64], warp: [128, 184, 64]}\nsplit: {mode: split_k}\nepilogue: {store: staged}",
     "plan_registers 2:37"},
    {"pipeline: {stages: 16}", "plan_stages 2:20"},
    {"copy: ld\npipeline: {stages: 2}", "plan_stages_ld 3:20"},
    {"a: {align: 2, repack: off}\npipeline: {stages: 3}", "plan_stages_ld 3:20"},
    {"tile: {block: [128, 256, 64]}\npipeline: {stages: 5}", "plan_shared 3:20"},
    {"tile: {block: [256, 128, 256]}", "plan_shared 2:15"},
    {"target: sm_86\ninstruction: wmma\ntile: {block: [256, 128, 16], warp: [64, 64, 16]}",
     "plan_shared_epilogue 4:15"},
    {"b: {layout: col}\nbeta: 0\nepilogue: {store: tma}\ntile: {block: [256, 200, 64], warp: [128, 200, 64], cluster: "
     "[1, 1, 8]}",
     "plan_shared_sums 5:15"},
    // The rest.
    {"pipeline: {schedule: pingpong}\nraster: {persistent: off}", "plan_persistent 3:22"},
    {"raster: {group: 65536}", "plan_raster_group 2:17"},
    {"raster: {order: hilbert, group: 12}", "plan_raster_hilbert 2:33"},
    {"raster: {order: hilbert, group: 64}", "plan_raster_hilbert 2:33"},
    {"instruction: mma\nraster: {scheduler: dynamic}", "plan_scheduler 3:21"},
    {"instruction: mma\npipeline: {schedule: cooperative}\nraster: {persistent: on, scheduler: dynamic}",
     "plan_schedule_family 3:22"},
    {"pipeline: {schedule: pipelined}\nraster: {scheduler: dynamic}", "plan_scheduler 3:21"},
    {"raster: {scheduler: dynamic, persistent: off}", "plan_scheduler 2:21"},
    {"tile: {cluster: [1, 2, 1]}\nraster: {scheduler: dynamic}", "plan_scheduler 3:21"},
    {"split: {mode: split_k}\nraster: {scheduler: dynamic}", "plan_scheduler 3:21"},
    {"instruction: mma\nepilogue: {store: tma}", "plan_store_staged 3:19"},
    {"tile: {cluster: [2, 1, 1]}\nsplit: {mode: stream_k}", "plan_split 3:15"},
    {"split: {mode: stream_k, slices: 3}", "plan_split_slices 2:33"},
    {"split: {mode: split_k, slices: 4, owners: 5}", "plan_split_owners 2:43"},
    {"instruction: fma", "plan_vector_problem 2:14"},
    {"fragments: {b: direct}", "plan_vector_problem 2:16"},
    {"instruction: mma\nfragments: {b: direct}", "plan_fragment_family 3:16"},
    {"d: {ld: 257}\nepilogue: {store: tma}", "plan_store_staged 3:19"},
    {"beta: 1\nepilogue: {store: tma, c: direct}", "plan_store_staged 3:19"},
    {"epilogue: {c: tma}", "plan_store_staged 2:15"},
    // Buffers between the sums and TMA.
    {"epilogue: {store: staged, buffers: 2}", "plan_store_buffers 2:36"},
    {"epilogue: {store: tma, buffers: 0}", "plan_store_buffers 2:33"},
    {"d: {ld: 257}\nepilogue: {buffers: 1}", "plan_store_buffers 3:21"},
    {"instruction: mma\nepilogue: {buffers: 1}", "plan_store_buffers 3:21"},
    {"beta: 1\nepilogue: {c: tma, buffers: 1}\ntile: {block: [64, 128, 64], warp: [64, 128, 64]}",
     "plan_store_buffers 3:29"},
    {"beta: 1\nepilogue: {c: tma, buffers: 8}\ntile: {block: [64, 128, 64]}", "plan_store_buffers 3:29"},
    {"epilogue: {buffers: 8}\npipeline: {stages: 6}\ntile: {block: [64, 256, 64]}", "plan_shared 3:20"},
    {"instruction: mma\nbeta: 1\nepilogue: {c: tma}", "plan_store_staged 4:15"},
    {"beta: 1\nc: {layout: col}\nepilogue: {c: tma}", "plan_store_staged 4:15"},
    {"beta: 1\nc: {type: f32}\nepilogue: {c: tma}", "plan_store_staged 4:15"},
    {"beta: 1\nc: {ld: 257}\nepilogue: {c: tma}", "plan_store_staged 4:15"},
    {"beta: 1\nepilogue: {store: staged, c: tma}", "plan_store_staged 3:30"},
    {"beta: 1\npipeline: {schedule: pipelined}\nepilogue: {c: tma}", "plan_store_staged 4:15"},
    {"beta: 1\nsplit: {mode: split_k}\nepilogue: {c: tma}", "plan_store_staged 4:15"},
    {"beta: 1\nswap_operands: on\nepilogue: {c: tma}", "plan_store_staged 4:15"},
    {"tile: {cluster: [1, 1, 2]}\nsplit: {mode: none}", "plan_split 3:15"},
    {"tile: {cluster: [1, 1, 4]}\nsplit: {mode: split_k, slices: 2}", "plan_split 3:15"},
    {"split: {mode: split_k, slices: 9, through: cluster}", "plan_split_slices 2:32"},
    {"split: {mode: split_k, through: cluster}\nraster: {persistent: on}", "plan_split 2:15"},
    {"tile: {cluster: [2, 2, 4]}", "plan_cluster_count 2:17"},
    // Swapped: the user's n is the kernel's m.
    {"d: {layout: col}\ntile: {block: [64, 100, 64]}\ninstruction: wgmma", "plan_block_multiple 3:20"},
    // Several at once.
    {"a: {ld: 8}\nb: {ld: 8}\npipeline: {stages: 16}\nraster: {group: 2000}",
     "plan_ld_small 2:9, plan_ld_small 3:9, plan_stages 4:20, plan_raster_group 5:17"},
};
/// Cases whose problem line matters.
const Case problemCases[] = {
    // A matrix by a vector.
    {"problem: {m: 1, n: 256, k: 256}\ninstruction: fma\npipeline: {stages: 2}", "plan_vector_field 3:20"},
    {"problem: {m: 1, n: 256, k: 256}\ninstruction: fma\nswap_operands: off", "plan_vector_field 3:16"},
    {"problem: {m: 1, n: 256, k: 256}\ninstruction: fma\nsplit: {slices: 3}", "plan_vector_field 3:17"},
    {"problem: {m: 1, n: 256, k: 256}\ninstruction: fma\ntile: {block: [1, 3, 64], warp: [1, 2, 64]}",
     "plan_vector_tile 3:15"},
    {"problem: {m: 256, n: 1, k: 256}\ninstruction: fma\ntile: {block: [64, 8, 64]}", "plan_vector_tile 3:15"},
    {"problem: {m: 256, n: 1, k: 256}\ninstruction: fma\na: {type: s8}", "plan_vector_problem 2:14"},
    {"problem: {m: dynamic, n: 1, k: 256}\ninstruction: fma", "plan_vector_problem 2:14"},
    {"problem: {m: 256, n: 1, k: 0}\ninstruction: fma", "plan_vector_problem 2:14"},
    {"problem: {m: 256, n: 256, k: 101}\na: {type: s4}", "plan_packed_size 1:30"},
    {"problem: {m: 256, n: 256, k: 256, batch: 4}\nd: {batch_stride: 65535}", "plan_batch_overlap 2:19"},
    {"problem: {m: 256, n: 256, k: 256, batch: 4}\nfold_batch: on", "plan_fold 2:13"},
    {"problem: {m: 256, n: 256, k: 0}\ncopy: tma", "plan_tma_empty 1:30"},
    {"problem: {m: 4294967296, n: 256, k: 256}\ncopy: tma", "plan_tma_extent 1:14"},
    {"problem: {m: 4, n: 256, k: 256}\ncopy: tma\na: {ld: 1099511627776, repack: off}", "plan_tma_stride 3:9"},
    {"problem: {m: 256, n: 256, k: 100}\ncopy: tma\na: {repack: off}", "plan_tma_pitch 1:30"},
    {"problem: {m: 64, n: 64, k: 64, batch: 2}\ncopy: tma\na: {batch_stride: 5004, repack: off}",
     "plan_tma_pitch 3:19"},
    {"problem: {m: 64, n: 64, k: 64, batch: 2}\ncopy: tma\nb: {batch_stride: 1099511627776, repack: off}",
     "plan_tma_stride 3:19"},
    {"problem: {m: 64, n: 64, k: 64, batch: 2}\nd: {batch_stride: 5004}\nepilogue: {store: tma}",
     "plan_store_staged 3:19"},
    {"problem: {m: 2, n: 64, k: 64}\nd: {ld: 1099511627776}\nepilogue: {store: tma}", "plan_store_staged 3:19"},
    {"problem: {m: 2, n: 64, k: 64}\nbeta: 1\nc: {ld: 1099511627776}\nepilogue: {c: tma}", "plan_store_staged 4:15"},
    {"problem: {m: 1, n: 1, k: 4, batch: 2200000000}\nb: {layout: col}", "plan_batch_tiles 1:36"},
    {"problem: {m: 256, n: 256, k: 256}\ninstruction: mma\na: {repack: on}", "plan_repack 3:13"},
    {"problem: {m: 256, n: 256, k: 256}\ntarget: sm_80\nb: {repack: on}", "plan_needs_sm90a 3:13"},
    {"problem: {m: 256, n: 256, k: 0}\na: {repack: on}", "plan_tma_empty 1:30"},
    // Lines that are shifted on their way.
    {"problem: {m: 2047, n: 2047, k: 5}\na: {repack: inside, layout: col}\nb: {layout: col}", "plan_repack 2:13"},
    {"problem: {m: 65, n: 2047, k: dynamic}\na: {repack: inside, ld: 2047}\nb: {layout: col}", "plan_repack 2:13"},
    {"problem: {m: 65, n: 2047, k: 7}\nb: {layout: row, repack: inside}", "plan_repack 2:26"},
    {"problem: {m: 65, n: 2047, k: 2047}\nb: {layout: col, repack: inside, align: 8}", "plan_repack 2:26"},
    {"problem: {m: 65, n: 2047, k: 2047}\nb: {layout: col, repack: inside, ld: dynamic}", "plan_repack 2:26"},
    {"problem: {m: 65, n: 2047, k: 2047}\nb: {layout: col, repack: inside}\npipeline: {schedule: pingpong}",
     "plan_repack 2:26"},
    {"problem: {m: 8, n: 2047, k: 2047}\nb: {layout: col, repack: inside}\ntile: {block: [8, 64, 256]}\nswap_operands: "
     "on",
     "plan_shift 3:15"},
    {"problem: {m: 64, n: 2047, k: 2047}\nb: {layout: row, repack: inside}\ntile: {block: [64, 256, 64]}",
     "plan_shift 3:15"},
    {"problem: {m: 65, n: 2047, k: 2047}\nb: {layout: col, repack: inside}\npipeline: {in_flight: 3}",
     "plan_repack 2:26"},
};

struct Outcome {
  std::string text;
  std::set<std::string> names;
  Diags diags;
};

/// Plans `yaml`; fills `outcome` with `row line:column, ...` and all names, those of notes too.
void planText(llvm::StringRef yaml, Outcome &outcome) {
  llvm::StringRef source = outcome.diags.addSource("s", yaml);
  std::optional<Spec> spec = readSpec(source, {}, outcome.diags);
  ASSERT_TRUE(spec) << yaml.str() << outcome.diags.all().front().message;
  std::optional<Plan> plan = makePlan(*spec, outcome.diags);
  EXPECT_EQ(plan.has_value(), !outcome.diags.hasErrors());
  for (const Problem &problem : outcome.diags.all()) {
    std::string place = outcome.diags.place(problem.range.Start);
    outcome.text += (outcome.text.empty() ? "" : ", ") + nameOf(problem.id).str() + " " +
                    llvm::StringRef(place).drop_front(place.empty() ? 0 : 2).str();
    outcome.names.insert(nameOf(problem.id).str());
    for (const Problem &note : problem.notes) {
      outcome.names.insert(nameOf(note.id).str());
      EXPECT_TRUE(note.range.isValid()) << note.message;
    }
  }
}

/// `yaml` with the fix-it put in. Its range points into the copy of `yaml` that starts at `start`.
std::string applied(const std::string &yaml, const char *start, const llvm::SMFixIt &fix) {
  std::string text = yaml;
  size_t from = fix.getRange().Start.getPointer() - start, to = fix.getRange().End.getPointer() - start;
  return text.replace(from, to - from, fix.getText().str());
}

void expectFixesHelp(const std::string &yaml) {
  Outcome before;
  llvm::StringRef source = before.diags.addSource("s", yaml);
  std::optional<Spec> spec = readSpec(source, {}, before.diags);
  ASSERT_TRUE(spec);
  (void)makePlan(*spec, before.diags);
  for (const Problem &problem : before.diags.all())
    for (const llvm::SMFixIt &fix : problem.fixes) {
      Outcome after;
      std::string fixed = applied(yaml, source.data(), fix);
      SCOPED_TRACE(fixed);
      planText(fixed, after);
      for (const Problem &left : after.diags.all())
        EXPECT_FALSE(left.id == problem.id &&
                     after.diags.place(left.range.Start) == before.diags.place(problem.range.Start))
            << left.message;
    }
}

std::vector<std::pair<std::string, std::string>> allCases() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Case &c : cases)
    all.emplace_back(std::string(cube256) + c.yaml + "\n", c.problems);
  for (const Case &c : problemCases)
    all.emplace_back(std::string(c.yaml) + "\n", c.problems);
  return all;
}
} // namespace

TEST(PlanProblems, EachInItsPlace) {
  for (const auto &[yaml, expected] : allCases()) {
    SCOPED_TRACE(yaml);
    Outcome outcome;
    planText(yaml, outcome);
    EXPECT_EQ(outcome.text, expected);
  }
}

TEST(PlanProblems, FixesGetPastThem) {
  for (const auto &[yaml, expected] : allCases()) {
    SCOPED_TRACE(yaml);
    expectFixesHelp(yaml);
  }
}

TEST(PlanProblems, EveryRowIsProduced) {
  std::set<std::string> seen;
  for (const auto &[yaml, expected] : allCases()) {
    Outcome outcome;
    planText(yaml, outcome);
    seen.insert(outcome.names.begin(), outcome.names.end());
  }
  // The reader lets no negative size through; a caller of the library can give one.
  for (const std::string &name : problemsOf(cube(-1)))
    seen.insert(name);
  for (unsigned i = 0; i < numDiags(); ++i) {
    llvm::StringRef name = nameOf(Diag(i));
    EXPECT_TRUE(!name.starts_with("plan_") || seen.count(name.str())) << name.str();
  }
}

// The numbers of the house's example, by hand: 6 x 2 x (128 x 64 + 64 x 128) = 196608.
TEST(PlanProblems, BudgetArithmetic) {
  Outcome outcome;
  planText("target: sm_80\nproblem: {m: 4096, n: 4096, k: 4096}\na: {type: f16}\ntile: {block: [128, 128, 64]}\n"
           "pipeline: {stages: 6}\n",
           outcome);
  ASSERT_EQ(outcome.diags.numErrors(), 1u);
  const Problem &problem = outcome.diags.all().front();
  EXPECT_EQ(problem.message, "6 stages need 196608 bytes of shared memory; sm_80 has 166912 per block");
  ASSERT_EQ(problem.fixes.size(), 1u);
  EXPECT_EQ(problem.fixes[0].getText(), "5");
  ASSERT_EQ(problem.notes.size(), 1u);
  EXPECT_EQ(problem.notes[0].message, "each stage holds A 128x64 and B 64x128 of f16: 32768 bytes");
}
