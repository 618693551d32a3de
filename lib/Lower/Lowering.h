/// The state of one lowering, and its parts by theme, a file each.
#pragma once
#include "gemmc/Layout/ColumnShares.h"
#include "gemmc/Layout/MatrixInstruction.h"
#include "gemmc/Layout/WmmaInstruction.h"
#include "gemmc/Lower/Lower.h"
#include "gemmc/PTX/Builder.h"
#include "gemmc/Support/Types.h"
#include "gemmc/Tile/SharedTileOf.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace gemmc {

/// What a register holds; a line of the L2, and a row of shared memory with swizzle 128B.
constexpr int64_t wordBytes = 4, lineBytes = 128;

using ptx::Type;
using ptx::Val;
using tile::Op;
using tile::OpKind;

/// A tensor of the kernel with its address and pitch in registers or constants.
struct TensorView {
  Elem type;
  Order order;
  Expr rows, cols;
  Val base; ///< b64 address, of a batch of the present product's matrix; not for tensors that only TMA reads.
  Val ld;   ///< Elements: an immediate or a b64 register.
  Val map;  ///< b64 address of the tensor map, or None.
  int64_t align = 1;
  std::string buffer;
  bool perProduct = false; ///< Of a batch: each product has a matrix of its own...
  Val first, stride;       ///< ...the first one at this address, `stride` elements apart; as `base`.
  int64_t elemBytes() const { return bytesOf(type); } ///< Of D and C, which are never packed, and of other operands.
};

/// Bytes between the lines of tensors: constants, or registers that are computed when first asked for.
class Pitches {
public:
  explicit Pitches(ptx::Builder &b) : b(b) {}
  Val of(const TensorView &tensor);
  Val of(const TensorView &tensor, int64_t lines); ///< From a line to the one so many on.

private:
  ptx::Builder &b;
  llvm::StringMap<Val> registers; ///< By buffer.
};
/// `ld.shared` of 4 words as `ld.shared.v4.b32`, of one as `ld.shared.b32`.
std::string vectorOf(llvm::StringRef stem, int64_t count, llvm::StringRef type);
/// alpha or beta as an op has it; nullopt: `dynamic` or (alpha) `-dynamic`, it is given at launch.
std::optional<double> fixedScale(llvm::StringRef word);
constexpr int64_t barrierBytes = 8;
constexpr int64_t maxOffset = int64_t(1) << 30; ///< An address holds 32 bits of offset.
constexpr int64_t groupThreads = 128;           ///< Of a warpgroup.
constexpr int64_t tensorMapBytes = 128;         ///< PTX ISA 9.7.9.28: 1024 bits.

struct SharedView {
  SharedTile tile;
  int64_t offset, stages;
  char operand; ///< 'A' or 'B'.
};

/// Named barriers (`bar.sync` and its like), beside 0 for the whole CTA. Whoever may be under way at the same time has
/// numbers of its own: warpgroups take turns, or gather parts of a tile, then store, each of up to four by itself.
namespace barriers {
constexpr int64_t turns = 1, parts = 1, stores = 5, clear = 15;
}

/// A tile of D in shared memory (or a part of it), and the threads that copy it out.
struct StagedTile {
  SharedTile tile;       ///< Its rows are D's lines: D's rows, or its columns where D is in column order.
  int64_t lines, length; ///< Of the part that is copied.
  Elem type;             ///< The accumulator's, or D's own (`finished`).
  bool finished;         ///< alpha, beta and C are in already.
  Val address;           ///< b32, of its first element.
  Val thread;            ///< Which of the threads this one is.
  int64_t threads;
  Val row0, col0; ///< Of its first element, in D.
};

/// Accumulator registers of one thread: [row block][index]. A block is what one instruction computes (wgmma: 64 rows by
/// 8 columns of what a warpgroup's does); `map` says where in it each register's elements are.
struct AccumulatorView {
  Elem type;
  int64_t warpM, warpN;
  int64_t blockRows, blockColumns;
  FragmentMap map;
  std::vector<std::vector<Val>> regs;
  std::map<int64_t, std::vector<Val>> kept; ///< Row blocks whose sums wait as D will have them, pairs in a register.
  bool half() const { return type == Elem::f16; }                                       ///< Two values a register.
  int64_t registers() const { return warpM * warpN / groupThreads / (half() ? 2 : 1); } ///< wgmma.
};

struct FragmentView {
  std::vector<std::vector<Val>> regs; ///< [buffer][register]
};

struct CursorView {
  Val slot, phase;
  int64_t stages;
};

constexpr int64_t counterBytes = 4; ///< Of a tile's counter in the workspace.

/// Before the first access to global memory of a kernel that overlaps the one in front of it: nothing of that one, nor
/// of those before it, is left to happen.
inline void waitForKernelInFront(ptx::Builder &b) { b("griddepcontrol.wait"); }

/// Declares a parameter in the kernel and in what a launch knows of it. A tensor map is 128 bytes aligned to 64.
void addParam(ptx::Function &function, ptx::KernelInfo &info, ptx::ParamInfo param);

ptx::TmaSwizzle tmaSwizzle(SharedLayout layout);

class Lowering {
public:
  explicit Lowering(const tile::Kernel &kernel);
  Lowered run();

private:
  // Lowering.cpp: parameters, declarations, the order of things.
  void declareParams();
  bool scalesBy(llvm::StringRef key,
                llvm::StringRef word) const; ///< Whether sums are scaled by `key` (alpha, beta) so.
  void declareViews();
  void nameRegion(const Op &op, int64_t bytes, int64_t stages, llvm::StringRef field);
  AccumulatorView accumulatorView(const Op &op);
  FragmentView fragmentView(const Op &op);
  std::string symbolOf(llvm::StringRef name) const;
  Val mapAddress(llvm::StringRef name); ///< Of the tensor map in parameter `name`.
  void identify();
  void ops(const std::vector<Op> &body);
  void op(const Op &op);
  void finish();

  // Expressions.cpp: integer expressions to 32-bit registers or immediates; conditions to predicates.
  Val value(const Expr &expr);
  Val condition(const Expr &expr); ///< None: always true.
  Val variable(llvm::StringRef name);
  Val add(const Val &a, const Val &b, llvm::StringRef name);
  Val mul(const Val &a, const Val &b, llvm::StringRef name);
  Val binary(llvm::StringRef mnemonic, const Val &a, const Val &b, llvm::StringRef name);
  Val divide(const Val &a, const Val &b, llvm::StringRef name);
  Val remainder(const Val &a, const Val &b, llvm::StringRef name);
  Val wide(const Val &a, const Val &b, llvm::StringRef name); ///< a (32) * b (imm or 64) as 64 bits.
  Val add64(const Val &a, const Val &b, llvm::StringRef name);
  Val inRegister(const Val &value, llvm::StringRef name);
  Val both(const Val &p, const Val &q, llvm::StringRef name = "both"); ///< Of two predicates; None is true.
  /// The lane's part of a place in a fragment.
  Val laneSum(llvm::ArrayRef<LaneTerm> terms, llvm::StringRef name);
  Val floatInRegister(const Val &value);
  ptx::Type factorType() const; ///< Of alpha and beta that are given at launch: f64 beside such sums, else f32.
  void compareBeta(llvm::StringRef how, const Val &into); ///< With 0; `how`: `eq`, `neu`.
  /// alpha or beta as an operand beside sums of that type: what the spec fixes, else (`nullopt`) what is `given` at
  /// launch. Those of s32 are whole and always fixed; sums of f16 are scaled as f32.
  Val factorOf(const std::optional<double> &fixed, const Val &given, Elem sums);
  Val factorInRegister(const std::optional<double> &fixed, const Val &given, Elem sums); ///< Of floats.
  /// Whether `extent` is known to be a multiple of `step`: then no tile reaches beyond it.
  static bool covers(const Expr &extent, int64_t step);
  /// Whether no tile of the kernel's, or of its clusters, reaches beyond a matrix like D.
  bool tilesCover(const TensorView &tensor) const;

  bool isDependent() const { return kernel.root.word("dependent") == "on"; }

  // Batch.cpp: products, whose tiles have their numbers one product behind the other.
  bool isBatch() const { return kernel.root.has("batch"); }
  // Of clusters those of all its CTAs count as one, but in `tileCount`.
  std::array<Expr, 2> clusterCounts() const; ///< Of a product, along m and n.
  Expr clusterCount() const;                 ///< Of all products.
  Expr tileCount() const;
  Val counted(const Expr &count); ///< To divide by: not zero, as then nobody is launched.
  Val tilesOfAll(const Val &tilesM, const Val &tilesN);
  Expr products() const { return isBatch() ? kernel.root.expr("batch") : Expr(1); }
  void enterProduct(const Val &product); ///< Tensors are its matrices from here on.
  /// Where a box of a tensor begins: x along what is contiguous, y, and of a batch the present product.
  std::vector<Val> boxAt(const TensorView &tensor, const Val &x, const Val &y);
  void addProducts(const Op &tensor, ptx::TensorMapInfo &map) const; ///< As the last dimension.
  Expr strideInMemory(const Op &tensor) const; ///< As TMA reads it: of a copy, where there is one. Elements.

  // Control.cpp
  void role(const Op &op);
  void tiles(const Op &op);
  void beginLate();
  void rememberTile();
  void enterLate();
  void late(const Op &op);
  void lateOfLast(const Op &tiles);
  void loop(const Op &op);
  bool wouldUnroll(const Val &from, const Val &to) const;
  void elect(const Op &op);

  // Raster.cpp: which tile of D has which number.
  void placeTile(const Val &id, const Val &clusterTilesM, const Val &clusterTilesN);
  void placeTileOfProduct(const Val &id, const Val &clusterTilesM, const Val &clusterTilesN);
  struct Band; ///< Tiles along the slow direction, up to `group` of them side by side.
  std::pair<Val, Val> placeInSquares(const Band &band);
  std::pair<Val, Val> placeInBands(const Band &band, int64_t rest);
  std::pair<Val, Val> hilbert(const Val &step, unsigned levels);

  // Scheduler.cpp: tiles by a counter of the grid.
  struct TileRing; ///< Through which a role hands their numbers to another one.
  bool countsTiles() const { return kernel.root.has("scheduler"); }
  void tilesByCounter(const Op &op);
  void giveTiles(const Op &op, const TileRing &ring);
  void takeTiles(const Op &op, const TileRing &ring);

  Val keyOf(const SharedTile &tile, const Val &row); ///< What the chunks of `row` are XORed with (SharedXor).
  /// Byte offset of (row, byte of the row) in a stage: SharedTile::offset in registers. Bytes come in multiples of
  /// `unit`.
  Val sharedOffset(const SharedTile &tile, const Val &row, const Val &byte, int64_t unit);

  // Copy.cpp, Tma.cpp
  void copy(const Op &op);
  struct ThreadCopy; ///< A copy by all threads of the CTA: ld or cp.async.
  void copyByTma(const Op &op, const TensorView &tensor, const SharedView &shared);
  Val cachePolicy(const Op &op);
  /// One box of `map`, of `at` as boxAt has it; with a `policy` of the L2, for the CTAs of `mask` where there is one.
  void loadBox(const Val &map, llvm::ArrayRef<Val> at, const Val &to, const Val &bar, const Val &policy = {},
               const Val &mask = {});
  void prefetchBox(const Val &map, llvm::ArrayRef<Val> at);
  static llvm::StringLiteral storeBox(llvm::ArrayRef<Val> at); ///< The instruction.
  void prefetch(const Op &op);
  TileParts partsOf(llvm::StringRef operand) const; ///< In which CTAs of a cluster bring tiles of A or B.
  Val placeOf(const Op &copy) const;                ///< This CTA's among those that share the tile.
  Val startOfPart(const Op &copy, int64_t each);    ///< The first row that this CTA brings, times `each`.
  struct Boxes;                                     ///< What one CTA copies of a tile by TMA.
  struct Edge;                                      ///< What an operand's last tile has.
  Edge edgeOf(const Op &tensor) const;
  std::optional<ptx::TensorMapInfo> edgeMap(const Op &tensor) const;
  std::optional<ptx::TensorMapInfo> partMap(const Op &tensor) const;
  /// Name and box of each map that an operand has beside its first one.
  std::vector<ptx::TensorMapInfo> moreMaps(const Op &tensor) const;
  std::vector<std::pair<std::string, Expr>> edgeNumbers(const Op &tensor) const;
  Val isLastTile(const Op &tensor);
  using CopyBox = llvm::function_ref<void(const Val &map, const Val &x, const Val &y, int64_t offset)>;
  void copyBoxes(const Op &op, const Boxes &boxes, const TensorView &tensor, CopyBox copy);
  void copyPart(const Op &op, const Boxes &boxes, const TensorView &tensor, const Val &whole, CopyBox copy);
  Val bytesExpected(int64_t whole); ///< Of a stage, less what last tiles do not have.
  void clear(const Op &op);
  Boxes boxesOf(const Op &op, const TensorView &tensor, const SharedView &shared);

  // Shift.cpp: operands whose lines start anywhere.
  std::vector<ptx::TensorMapInfo> lineMaps(const Op &tensor) const; ///< Empty for the others.
  std::pair<Val, Val> startOfMatrix(int64_t stride, int64_t chunk); ///< Of the product whose tile it is.
  void copyLines(const Op &op, const TensorView &tensor, const SharedView &raw);
  void shift(llvm::ArrayRef<Op> operands); ///< All at once: their loads are on their way together.

  // Sync.cpp
  void initBarriers();
  Val expectedBytes(const Op &barrier); ///< Of a barrier that is told so when it is made, in this CTA.
  void clusterBarrier();
  void cursor(const Op &op);
  void advance(const Op &op);
  void expect(const Op &op);
  void wait(const Op &op);
  void arrive(const Op &op);
  void turn(const Op &op);
  void trigger();
  Val barrierAddress(const tile::Ref &ref, llvm::StringRef name);
  void arriveAlong(const Op &op, const Val &bar);
  Val stageAddress(const SharedView &shared, const tile::Ref &ref, llvm::StringRef name);

  // Mma.cpp, Wgmma.cpp
  void zero(const Op &op);
  void promote(const Op &op);
  void convert(const Op &op);
  struct FragmentSource; ///< The warp's part of an operand's tile, for one k step.
  void load(const Op &op);
  void loadByLdmatrix(FragmentSource &source);
  void loadByWords(FragmentSource &source);
  void loadByElements(FragmentSource &source);
  Val elementAddress(const FragmentSource &source, const Val &row, int64_t rowConst, const Val &byte,
                     int64_t byteConst);
  void mma(const Op &op);
  void wgmma(const Op &op);
  bool threadsReadShared() const;
  void loadForWgmma(const Op &op);
  void loadTurned(const SharedTile &tile, const Val &start, const Val &stage, const std::vector<Val> &regs,
                  int64_t step);
  Val groupAlong(const Op &acc, bool m); ///< The warpgroup's place in the block tile along m or n.
  uint64_t descriptorBits(const SharedView &shared) const;

  // Dot.cpp: a matrix by a vector.
  struct VectorTile;
  AccumulatorView vectorAccumulator(const Op &op);
  Val laneRow(const VectorTile &t);
  Val laneDepth(const VectorTile &t);
  void dot(const Op &op);
  void meet(const Op &op);
  void meetSlices(const Op &op, const Val &own, AccumulatorView &acc);
  void storeVector(const Op &op);

  // Wmma.cpp
  void wmmaLoad(const Op &op);
  void wmmaMultiply(const Op &op);
  /// Calls `visit` for each accumulator fragment of the warp with its address in the tile of D at `to`; `form`: what
  /// stands behind `wmma.load.c` and `wmma.store.d`.
  void forEachFragment(
      const StagedTile &to, const AccumulatorView &acc,
      llvm::function_ref<void(const Val &address, const std::vector<Val> &regs, const std::string &form)> visit);
  /// Where this warp's part of the tile of D in `view` begins.
  StagedTile warpTile(const SharedView &view, const tile::Ref &ref, const AccumulatorView &acc, const Op &decl);
  void wmmaStage(const StagedTile &to, const AccumulatorView &acc);
  AccumulatorView wmmaAccumulator(const Op &op);
  FragmentView wmmaFragment(const Op &op);

  // Slices.cpp: warps that share a block tile's depth.
  Val slice();       ///< Which slice of k this warp multiplies; 0 when there is one only.
  Val warpInSlice(); ///< Its number among the warps of the slice.
  void send(const Op &op);
  void receive(const Op &op);
  void exchange(llvm::StringRef buffer, const AccumulatorView &acc,
                llvm::function_ref<void(const Val &address, const std::vector<Val> &regs)> visit);

  // Store.cpp, StagedStore.cpp
  struct Elements; ///< Elements.h: of C and D, one by one.
  void store(const Op &op);
  void stage(const Op &op);
  void bring(const Op &op);
  void combine(const Op &op);
  void mmaStage(const StagedTile &to, const AccumulatorView &acc);
  void storeStaged(const Op &op);
  StagedTile wholeTile(const tile::Ref &ref, const tile::Ref &at, bool finished);
  struct CopyOut; ///< A tile on its way from shared to global memory.
  void copyOut(const Op &store, const StagedTile &from);
  struct LinesOfC;     ///< LinesOfC.h: where warps bring C themselves.
  struct FragmentsOfC; ///< FragmentsOfC.h: where lanes do, each its own sums' elements.
  struct OddLines;     ///< OddLines.h: where D's lines do not start at multiples of 16 bytes.

  // Parts.cpp: CTAs that share the k steps of a tile.
  struct TileGrid {
    Val m, n; ///< Tiles along m and n; of clusters those of all its CTAs are one.
    Val own;  ///< The number of this CTA, or cluster.
    Val all;  ///< How many there are.
  };
  static bool isStream(const Op &tiles);
  bool gathers() const; ///< Parts of a tile meet in the workspace.
  Expr stepCount() const;
  int64_t slotBytes() const;
  Expr countersEnd() const;
  void tilesInParts(const Op &op);
  void splitTiles(const Op &op, const TileGrid &grid, const Expr &atATime);
  void streamTiles(const Op &op, const TileGrid &grid, const Expr &atATime);
  Val slotOf(const Val &part, bool stream);
  int64_t countersOfTile() const;
  int64_t registersForParts() const;
  int64_t partsAtOnce(int64_t sums) const;
  struct Gather; ///< Gather.cpp: code where the parts of one tile meet.
  void gather(const Op &op);
  Expr counterCount() const; ///< In the workspace's beginning: they are zero when the kernel starts.
  void clearCounters();

  // Exchange.cpp: CTAs of a cluster that share the k steps of a tile.
  int64_t clusterSize() const { return clusterM * clusterN * clusterK; }
  void placeSlice(const Val &number, int64_t count);
  void meetCluster();
  struct Exchange; ///< Code for the sums of one tile, in shares.
  void exchange(const Op &op);
  ColumnShares storedColumns() const; ///< Of a warpgroup's tile, by each CTA.
  void leaveCluster();
  // CopyKernel.cpp: operands in rows that TMA cannot read, or in a direction that wgmma does not.
  void repackOperands();

  // Slices.cpp: how sums of a type are moved and added, register by register.
  struct SumWords {
    const char *type, *move, *add;
    Type reg;
    int64_t bytes;
    Val zero() const;
  };
  static SumWords sumWords(Elem type);

  // WarpStore.cpp: wgmma, through shared memory.
  void keep(const Op &op);
  void storeThroughShared(const Op &op);
  int64_t registersOfThread() const; ///< Of consumers.
  struct StagedSums;
  struct WarpStore;
  /// D in column order, by warpgroup `unit`: `row0`, `col0`, `slots` are its own.
  struct TransposedStore;
  void storeTransposed(const Op &op, StagedSums &sums, const Val &unit, const Val &row0, const Val &col0,
                       const Val &slots);
  std::vector<ptx::TensorMapInfo> turnedMaps(const Op &tensor) const;
  /// A part of a line of D: `columns` elements from `column` on, 16 to 128 bytes.
  struct LinePiece {
    int64_t column, columns, bytes;
  };
  static std::vector<LinePiece> linePieces(int64_t columns, int64_t elemBytes);
  /// The maps of a tensor that TMA moves in such pieces, D or C; empty for the others.
  std::vector<ptx::TensorMapInfo> pieceMaps(const Op &tensor) const;
  /// Of a tensor that has more maps than one: those of its pieces or of its lines.
  std::vector<ptx::TensorMapInfo> severalMaps(const Op &tensor) const {
    return tensor.has("shift") ? lineMaps(tensor) : pieceMaps(tensor);
  }
  static std::string pieceMap(llvm::StringRef buffer, int64_t bytes);

  // PrefetchLines.cpp: C that threads will add.
  void prefetchLines(const Op &op);

  // BringC.cpp: C by TMA, into the buffers that D leaves through.
  void bringByTma(const Op &op);
  struct BufferOfC {
    Val brought, left; ///< b32: its mbarriers.
    Val parity;        ///< Of the phase that `op` waits for.
    Val place;         ///< b32.
  };
  /// Where chunk `number` of the `chunks` of warpgroup `ring`'s tile goes; `op`: what brings C there or stores from
  /// there.
  BufferOfC bufferOfC(const Op &op, llvm::StringRef shared, const Val &ring, int64_t number, int64_t chunks);

  const tile::Kernel &kernel;
  Lowered result;
  ptx::Function &function;
  ptx::Builder b;
  bool isWgmma, isTma;
  bool isWmma = false;
  bool isVector;                             ///< A matrix by a vector: no tiles in shared memory.
  const MatrixInstruction *matrix = nullptr; ///< mma.sync, wmma.
  int64_t slices;
  int64_t clusterM, clusterN, clusterK = 1;
  llvm::StringMap<Val> variables; ///< By name: launch variables, loop variables, tm, tn, wg.
  llvm::StringMap<TensorView> tensors;
  llvm::StringMap<SharedView> buffers;
  llvm::StringMap<AccumulatorView> accumulators;
  llvm::StringMap<FragmentView> fragments;
  llvm::StringMap<CursorView> cursors;
  Val tid, lane, warp, sharedBase;
  Val rank, rankM, rankN, rankK;       ///< In the cluster; None without one.
  Val ownColumn = 0;                   ///< Of the warpgroup's tile: where the columns begin that this CTA stores.
  bool clusterWaits = false;           ///< The cluster barrier of the start has been arrived at and not waited for.
  int64_t roleWarp = 0, roleWarps = 0; ///< Of the role being lowered.
  /// The tile of a CTA that has several: whose turn comes `stride` later is the same warps', `step` later the CTA's.
  struct TileWalk {
    Val id, step, stride, total;
    bool inside = false; ///< In the loop, else behind it.
  };
  std::optional<TileWalk> walk;
  /// What `late` does for the tile before the present one: where that lies, and whether there is one.
  struct LateTile {
    Val m, n, exists;
    Val product; ///< Of a batch.
  };
  std::optional<LateTile> lateTile;
  bool lanesElected = false; ///< Inside `elect`: one lane is there.
  struct {
    Val tile, slot, first,
        count; ///< Of the tile; own slot; where the tile's slots begin (stream-k: its first CTA); parts.
  } parts;
  Val alpha, beta; ///< Registers of `factorType` when given at launch; alpha with the product's sign.
};

} // namespace gemmc
