#include "Lowering.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

namespace gemmc {
namespace {
constexpr llvm::StringLiteral sharedName = "smem";

/// Which launch variables the kernel reads: those of its sizes and pitches.
std::set<std::string> variablesOf(const tile::Kernel &kernel, llvm::function_ref<bool(const Op &)> byTma) {
  std::set<std::string> names;
  auto collect = [&](const Expr &expr) { expr.forEachVar([&](llvm::StringRef name) { names.insert(name.str()); }); };
  for (llvm::StringRef key : {"m", "n", "k", "batch"})
    if (kernel.root.has(key))
      collect(kernel.root.expr(key));
  for (const Op &op : kernel.body())
    if (op.kind == OpKind::Tensor && !byTma(op)) {
      collect(op.expr("ld"));
      if (op.has("batch"))
        collect(op.expr("batch"));
    }
  return names;
}

/// Leading dimensions and strides of batches.
bool isDistance(llvm::StringRef variable) { return variable.starts_with("ld") || variable.starts_with("stride_"); }

Elem elemOf(const Op &op) { return *parseElem(op.word("type")); }
} // namespace

Val Pitches::of(const TensorView &tensor) {
  if (tensor.ld.isImm())
    return tensor.ld.op.imm * tensor.elemBytes();
  auto [entry, fresh] = registers.try_emplace(tensor.buffer);
  if (fresh) {
    entry->second = b.reg(Type::b64, tensor.buffer + "_pitch");
    b("shl.b64", entry->second, tensor.ld, int64_t(llvm::Log2_64(tensor.elemBytes())));
  }
  return entry->second;
}

Val Pitches::of(const TensorView &tensor, int64_t lines) {
  Val pitch = of(tensor);
  if (pitch.isImm())
    return lines * pitch.op.imm;
  if (lines == 1)
    return pitch;
  Val step = b.reg(Type::b64, tensor.buffer + "_step");
  b("mul.lo.u64", step, pitch, lines);
  return step;
}

std::string vectorOf(llvm::StringRef stem, int64_t count, llvm::StringRef type) {
  return (stem + (count == 1 ? "." : count == 2 ? ".v2." : ".v4.") + type).str();
}

Lowering::Lowering(const tile::Kernel &kernel)
    : kernel(kernel), function(result.module.functions.emplace_back()), b(function) {
  isWgmma = kernel.word("instruction") == "wgmma";
  isTma = kernel.word("copy") == "tma";
  slices = kernel.root.number("slices", 1);
  isVector = kernel.word("instruction") == "fma";
  if (!isWgmma && !isVector) {
    Elem type = *parseElem(kernel.declaration("sA")->word("type")),
         sum = *parseElem(kernel.declaration("acc")->word("type"));
    isWmma = kernel.word("instruction") == "wmma";
    matrix = findInstruction(isWmma ? wmmaInstructions() : matrixInstructions(), kernel.root.item("matrix", 0),
                             kernel.root.item("matrix", 1), kernel.root.item("matrix", 2), type, sum);
    assert(matrix && "the plan takes instructions from the same table");
  }
  clusterM = kernel.root.item("cluster", 0);
  clusterN = kernel.root.item("cluster", 1);
  clusterK = kernel.root.number("cluster_k", 1);
  function.name = kernel.name().str();
  unsigned threads = kernel.number("threads");
  function.reqntid = {threads, 1, 1};
  // How many registers a thread may have: ptxas else guesses, at times so few that it spills; up to the very last one
  // its schedule spills as well, and adding parts up takes all that it gets, and so does f64: with 248 18 of 240 given
  // tiles of f64 in parts spilled 4 or 8 bytes, with 252 one does (ptxas 13). So do 8-bit floats, which mma of sm_90
  // turns first: with 240 two of 224 random specs, whose k comes at launch, spilled 4 bytes, with 248 none does
  // (2026-11-30). setmaxnreg needs a cap at entry that leaves the count to the launch.
  constexpr unsigned registersPerSM = 65536, usual = 240, toTurnFloats = 248, most = 252;
  unsigned resident = kernel.root.number("resident", 1);
  const bool wide = matrix && bitsOf(matrix->type) == 64;
  const unsigned wanted = gathers() || wide ? most : matrix && isFloat8(matrix->type) ? toTurnFloats : usual;
  if (isWgmma)
    function.minnctapersm = resident;
  else
    function.maxnreg = std::min(wanted, registersPerSM / (resident * threads) / 8 * 8);
  result.module.target = kernel.word("target").str();
  result.module.versionMajor = 8;
  result.module.versionMinor = isTma ? 3 : 0;
  if (matrix && isFloat8(matrix->type)) // PTX ISA 9.7.14.5.14, PTX ISA Notes
    result.module.versionMinor = matrix->k == 16 ? 7 : 4;
  result.kernel.name = function.name;
  result.kernel.block = {threads, 1, 1};
  uint32_t cluster = clusterSize();
  if (cluster > 1)
    function.reqnctapercluster = {cluster, 1, 1};
  result.kernel.cluster = {cluster, 1, 1};
  result.kernel.dynamicShared = kernel.number("shared");
}

Lowered Lowering::run() {
  declareParams();
  identify();
  declareViews();
  for (const Op &op : kernel.body())
    if (op.kind == OpKind::Clear)
      clear(op);
  initBarriers();
  if (isDependent()) {
    for (const Op &op : kernel.body())
      if (op.kind == OpKind::Ahead)
        ops(op.body);
    waitForKernelInFront(b);
    if (!kernel.root.has("trigger"))
      b("griddepcontrol.launch_dependents");
  }
  ops(kernel.body());
  finish();
  if (counterCount() != Expr(0))
    clearCounters();
  repackOperands();
  if (isDependent()) {
    result.kernel.overlaps = 1;
    for (ptx::KernelInfo &before : result.before)
      before.overlaps = 1;
  }
  return std::move(result);
}

void addParam(ptx::Function &function, ptx::KernelInfo &info, ptx::ParamInfo param) {
  ptx::Variable variable;
  variable.space = ptx::Space::param;
  variable.type = param.type;
  variable.name = param.name;
  if (param.kind == ptx::ParamInfo::TensorMap) {
    variable.align = 64;
    variable.extent = {tensorMapBytes};
  }
  function.params.push_back(variable);
  info.params.push_back(std::move(param));
}

/// What parameter or shared memory `name` is called in the module: not like its kernel, as ptxas 13 and the driver
/// write beyond their own memory then (parameters: "double free or corruption", segmentation faults) or refuse it.
std::string Lowering::symbolOf(llvm::StringRef name) const {
  return (name == kernel.name() ? name + "_given" : llvm::Twine(name)).str();
}

/// Tensor maps first (they are aligned to 64 bytes), then pointers, sizes, scales.
void Lowering::declareParams() {
  using ptx::ParamInfo;
  auto add = [&](ParamInfo::Kind kind, Type type, llvm::StringRef name, llvm::StringRef source, Expr value = 0) {
    addParam(function, result.kernel, {kind, symbolOf(name), type, source.str(), value});
  };
  auto isTensor = [](const Op &op) { return op.kind == OpKind::Tensor; };
  auto isOperand = [&](const Op &op) {
    return isTma && (op.subject.name == "A" || op.subject.name == "B") && !op.has("shift");
  };
  auto byTma = [&](const Op &op) { return isOperand(op) || !severalMaps(op).empty(); };
  for (const Op &op : kernel.body())
    if (isTensor(op) && isOperand(op)) {
      add(ParamInfo::TensorMap, Type::b8, op.word("buffer").str() + "_map", op.word("buffer").str() + "_map");
      for (const ptx::TensorMapInfo &map : moreMaps(op))
        add(ParamInfo::TensorMap, Type::b8, map.name, map.name);
    }
  for (const Op &op : kernel.body())
    if (isTensor(op))
      for (ptx::TensorMapInfo &map : severalMaps(op)) {
        add(ParamInfo::TensorMap, Type::b8, map.name, map.name);
        result.kernel.maps.push_back(std::move(map));
      }
  for (const Op &op : kernel.body())
    if (isTensor(op) && !byTma(op))
      add(ParamInfo::Pointer, Type::u64, op.word("buffer").str() + "_ptr", op.word("buffer"));
  if (gathers() || countsTiles())
    add(ParamInfo::Pointer, Type::u64, "workspace_ptr", "workspace");
  for (const std::string &name : variablesOf(kernel, byTma))
    add(ParamInfo::Int, isDistance(name) ? Type::u64 : Type::u32, name, "", Expr::var(name));
  for (const Op &op : kernel.body())
    if (isTensor(op))
      for (const auto &[name, number] : edgeNumbers(op))
        add(ParamInfo::Int, Type::u32, name, "", number);
  for (llvm::StringRef key : {"alpha", "beta"})
    if (scalesBy(key, "dynamic") || scalesBy(key, "-dynamic"))
      add(ParamInfo::Float, factorType(), key, key);
}

bool Lowering::scalesBy(llvm::StringRef key, llvm::StringRef word) const {
  bool found = false; // a tile may be stored in parts
  tile::walk(kernel.body(), [&](const Op &op) {
    found |= (op.kind == OpKind::Store || op.kind == OpKind::Combine) && op.word(key) == word;
  });
  return found;
}

/// Who am I: thread, lane, warp, place in the cluster; where shared memory starts; the parameters.
void Lowering::identify() {
  tid = b.reg(Type::b32, "tid");
  b("mov.u32", tid, b.special("%tid.x"));
  lane = binary("and.b32", tid, 31, "lane");
  Val warpOfThread = binary("shr.u32", tid, 5, "warp_of_thread");
  // One lane's value for all: the compiler then knows that the warp takes one way at each branch on it.
  warp = b.reg(Type::b32, "warp");
  b("shfl.sync.idx.b32", warp, warpOfThread, 0, 31, -1);
  if (clusterSize() > 1) {
    rank = b.reg(Type::b32, "rank");
    b("mov.u32", rank, b.special("%cluster_ctarank"));
    rankM = remainder(rank, clusterM, "rank_m");
    rankN = divide(rank, clusterM, "rank_n");
    rankK = divide(rankN, clusterN, "rank_k");
    if (clusterK > 1)
      rankN = remainder(rankN, clusterN, "rank_n");
  }

  ptx::Variable shared;
  shared.space = ptx::Space::shared;
  shared.type = Type::b8;
  shared.align = 1024;
  shared.name = symbolOf(sharedName);
  shared.extent = {0};
  shared.isExtern = true;
  result.module.vars.push_back(shared);
  sharedBase = b.reg(Type::b32, "smem_base");
  b("mov.u32", sharedBase, b.symbol(shared.name));

  for (const ptx::ParamInfo &param : result.kernel.params) {
    const std::string name = param.name == symbolOf(kernel.name()) ? kernel.name().str() : param.name;
    switch (param.kind) {
    case ptx::ParamInfo::TensorMap:
      break;
    case ptx::ParamInfo::Pointer: {
      Val raw = b.reg(Type::b64, name), address = b.reg(Type::b64, param.source + "_base");
      b("ld.param.u64", raw, at(b.symbol(param.name)));
      b("cvta.to.global.u64", address, raw);
      variables[name] = address;
      break;
    }
    case ptx::ParamInfo::Int: {
      bool is64 = param.type == Type::u64;
      Val reg = b.reg(is64 ? Type::b64 : Type::b32, name);
      b(is64 ? "ld.param.u64" : "ld.param.u32", reg, at(b.symbol(param.name)));
      variables[name] = reg;
      break;
    }
    case ptx::ParamInfo::Float: {
      Val reg = b.reg(param.type, name);
      const std::string type = nameOf(param.type).str();
      b("ld.param." + type, reg, at(b.symbol(param.name)));
      (name == "alpha" ? alpha : beta) = reg;
      if (scalesBy(name, "-dynamic"))
        b("neg." + type, reg, reg);
      break;
    }
    }
  }
}

Val Lowering::mapAddress(llvm::StringRef name) {
  Val map = b.reg(Type::b64, (name + "_param").str()), address = b.reg(Type::b64, name);
  b("mov.b64", map, b.symbol(symbolOf(name)));
  b("cvta.param.u64", address, map);
  return address;
}

void Lowering::declareViews() {
  // The tiles of lines that are shifted are as many as they are, whatever stages there are.
  std::string repack; // which field says so; of both operands the first one's
  llvm::StringMap<std::string> shiftedTiles;
  for (const Op *tensor : kernel.shiftedTensors()) {
    std::string field = (tensor->word("buffer") + ".repack").str();
    repack = repack.empty() ? field : repack;
    shiftedTiles["s" + tensor->subject.name] = std::move(field);
  }
  for (const Op &op : kernel.body()) {
    llvm::StringRef name = op.subject.name;
    if (op.kind == OpKind::Tensor) {
      TensorView view{elemOf(op),
                      op.word("order") == "row" ? Order::row : Order::col,
                      op.expr("rows"),
                      op.expr("cols"),
                      {},
                      {},
                      {},
                      op.number("align"),
                      op.word("buffer").str(),
                      op.has("batch"),
                      {},
                      {}};
      if (auto found = variables.find(view.buffer + "_ptr"); found != variables.end()) {
        auto distance = [&](llvm::StringRef key) {
          const Expr &elements = op.expr(key);
          return elements.isConst() ? Val(elements.constant()) : variables[elements.name()];
        };
        view.base = found->second;
        view.ld = distance("ld");
        if (view.perProduct)
          view.first = view.base, view.stride = distance("batch");
      } else if (auto maps = severalMaps(op); !maps.empty()) {
        for (const ptx::TensorMapInfo &map : maps)
          variables[map.name] = mapAddress(map.name);
      } else {
        view.map = mapAddress(view.buffer + "_map");
        for (const ptx::TensorMapInfo &map : moreMaps(op))
          variables[map.name] = mapAddress(map.name);
      }
      tensors.try_emplace(name, std::move(view));
    } else if (op.kind == OpKind::Shared) {
      SharedTile tile = tile::tileOf(op);
      int64_t stages = op.number("stages", 1);
      buffers.try_emplace(name, SharedView{tile, op.number("offset"), stages, name.back()});
      nameRegion(op, tile.stageBytes(), stages,
                 name == "sD"                  ? "epilogue.store"
                 : name == "sR"                ? "tile.warp"
                 : name == "sX"                ? "split.through"
                 : name == "sT"                ? "raster.scheduler"
                 : shiftedTiles.contains(name) ? llvm::StringRef(shiftedTiles[name])
                 : stages > 1                  ? "pipeline.stages"
                                               : "tile.block");
    } else if (op.kind == OpKind::Barrier) {
      bool ofC = name == "brought" || name == "left", ofTiles = name == "given" || name == "taken";
      nameRegion(op, barrierBytes, op.number("stages"),
                 ofC                                   ? "epilogue.c"
                 : ofTiles                             ? "raster.scheduler"
                 : name == "shifted" || name == "used" ? llvm::StringRef(repack)
                                                       : "pipeline.stages");
    } else if (op.kind == OpKind::Accumulator) {
      accumulators.try_emplace(name, accumulatorView(op));
    } else if (op.kind == OpKind::Fragment) {
      fragments.try_emplace(name, fragmentView(op));
    }
  }
}

/// For the messages of those who have only the PTX.
void Lowering::nameRegion(const Op &op, int64_t bytes, int64_t stages, llvm::StringRef field) {
  ptx::RegionInfo region;
  region.name = op.subject.name;
  region.offset = op.number("offset");
  region.bytes = bytes;
  region.stages = stages;
  region.field = field.str();
  result.kernel.memory.push_back(std::move(region));
}

AccumulatorView Lowering::accumulatorView(const Op &op) {
  if (isWmma)
    return wmmaAccumulator(op);
  if (isVector)
    return vectorAccumulator(op);
  AccumulatorView view{elemOf(op), op.item("warp", 0), op.item("warp", 1), 64, 8, {}, {}, {}};
  if (matrix) {
    view.blockRows = matrix->rows();
    view.blockColumns = matrix->columns();
  }
  // wgmma (PTX ISA 9.7.15.5.1.1): each warp's 16 rows lie as those of an m16n8 instruction.
  const Elem packed = view.type == Elem::f16 ? Elem::f16 : Elem::f32;
  view.map = fragmentMap(matrix ? *matrix : *findInstruction(matrixInstructions(), 16, 8, 16, Elem::f16, packed),
                         MatrixRole::accumulator);
  int64_t perBlock = view.warpN / view.blockColumns * int64_t(view.map.registers.size());
  Type type = view.type == Elem::f32 ? Type::f32 : view.type == Elem::f64 ? Type::f64 : Type::b32;
  for (int64_t i = 0; i < view.warpM / view.blockRows; ++i)
    view.regs.push_back(b.regs(type, (op.subject.name + llvm::Twine(i) + "_").str(), perBlock));
  tile::walk(kernel.body(), [&](const Op &keep) {
    if (keep.kind == OpKind::Keep && keep.subject.name == op.subject.name)
      view.kept[keep.number("block")] = b.regs(Type::b32, "kept", view.warpN / 4);
  });
  return view;
}

FragmentView Lowering::fragmentView(const Op &op) {
  if (isWmma)
    return wmmaFragment(op);
  bool isA = op.word("operand") == "a";
  const Op &acc = *kernel.declaration(op.ref("of").name);
  if (isWgmma) { // a warp's 16 of each 64 rows, by 16
    FragmentView view;
    for (int64_t i = 0; i < op.number("buffers"); ++i)
      view.regs.push_back(b.regs(Type::b32, ("afrag" + llvm::Twine(i) + "_").str(), acc.item("warp", 0) / 64 * 4));
    return view;
  }
  int64_t blocks = acc.item("warp", isA ? 0 : 1) / (isA ? matrix->rows() : matrix->columns());
  int64_t each = fragmentMap(*matrix, isA ? MatrixRole::a : MatrixRole::b).registers.size();
  Type type = matrix->type == Elem::f64 ? Type::f64 : Type::b32;
  FragmentView view;
  for (int64_t i = 0; i < op.number("buffers"); ++i)
    view.regs.push_back(b.regs(type, (op.word("operand") + "frag" + llvm::Twine(i) + "_").str(), each * blocks));
  return view;
}

void Lowering::ops(const std::vector<Op> &body) {
  for (llvm::ArrayRef<Op> left = body; !left.empty();) {
    b.setOrigin(left.front().range);
    const size_t shifts = left.take_while([](const Op &op) { return op.kind == OpKind::Shift; }).size();
    if (shifts)
      shift(left.take_front(shifts));
    else
      op(left.front());
    left = left.drop_front(std::max<size_t>(1, shifts));
  }
}

void Lowering::op(const Op &op) {
  switch (op.kind) {
  case OpKind::Tensor:
  case OpKind::Shared:
  case OpKind::Barrier:
  case OpKind::Accumulator:
  case OpKind::Fragment: // declareViews
  case OpKind::Ahead:    // run
    return;
  case OpKind::Clear:
    if (roleWarps) // else run
      clear(op);
    return;
  case OpKind::Role:
    return role(op);
  case OpKind::Tiles:
    return tiles(op);
  case OpKind::For:
    return loop(op);
  case OpKind::Late:
    return late(op);
  case OpKind::Elect:
    return elect(op);
  case OpKind::Copy:
    return copy(op);
  case OpKind::Prefetch:
    return prefetch(op);
  case OpKind::PrefetchLines:
    return prefetchLines(op);
  case OpKind::Shift:
    return shift(op);
  case OpKind::Commit:
    b("cp.async.commit_group");
    return;
  case OpKind::WaitGroup:
    b("cp.async.wait_group", op.number("pending"));
    return;
  case OpKind::Sync:
    b("bar.sync", 0);
    return;
  case OpKind::Cursor:
    return cursor(op);
  case OpKind::Advance:
    return advance(op);
  case OpKind::Expect:
    return expect(op);
  case OpKind::Wait:
    return wait(op);
  case OpKind::Arrive:
    return arrive(op);
  case OpKind::Turn:
    return turn(op);
  case OpKind::Trigger:
    return trigger();
  case OpKind::Zero:
    return zero(op);
  case OpKind::Load:
    return isWmma ? wmmaLoad(op) : load(op);
  case OpKind::Mma:
    return isWmma ? wmmaMultiply(op) : mma(op);
  case OpKind::Wgmma:
    return wgmma(op);
  case OpKind::Dot:
    return dot(op);
  case OpKind::Meet:
    return meet(op);
  case OpKind::Convert:
    return convert(op);
  case OpKind::Promote:
    return promote(op);
  case OpKind::WaitWgmma:
    b("wgmma.wait_group.sync.aligned", op.number("pending"));
    return;
  case OpKind::Send:
    return send(op);
  case OpKind::Receive:
    return receive(op);
  case OpKind::Bring:
    return op.has("via") ? bringByTma(op) : bring(op);
  case OpKind::Combine:
    return combine(op);
  case OpKind::Stage:
    return stage(op);
  case OpKind::Store:
    return isVector                             ? storeVector(op)
           : op.has("through")                  ? storeThroughShared(op)
           : buffers.count(op.ref("from").name) ? storeStaged(op)
                                                : store(op);
  case OpKind::Keep:
    return keep(op);
  case OpKind::Gather:
    return gather(op);
  case OpKind::Exchange:
    return exchange(op);
  case OpKind::WaitStore:
    b("cp.async.bulk.wait_group", op.number("pending"));
    return;
  case OpKind::Multiply:
    break;
  }
  llvm_unreachable("split-multiply replaces every multiply");
}

void Lowering::finish() {
  if (clusterM * clusterN > 1) { // along k alone, whoever is written to waits for what is written
    b.comment("no CTA leaves while others may still signal its barriers");
    b("barrier.cluster.arrive.release");
    b("barrier.cluster.wait.acquire");
  }
  b("ret");
}

Lowered lowerKernel(const tile::Kernel &kernel) { return Lowering(kernel).run(); }

} // namespace gemmc
