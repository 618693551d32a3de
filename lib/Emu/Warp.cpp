#include "Check.h"
#include "Lanes.h"
#include "gemmc/Emu/Timeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace llvm;

namespace gemmc::emu {

/// Registers of a thread when the kernel starts; 0 when no directive caps them, so that nobody knows.
static uint32_t registersAtEntry(const ptx::Function &function) {
  if (function.maxnreg)
    return function.maxnreg / 8 * 8;
  const auto &block = function.reqntid[0] ? function.reqntid : function.maxntid;
  uint32_t threads = block[0] * std::max(1u, block[1]) * std::max(1u, block[2]);
  if (!threads || !function.minnctapersm)
    return 0;
  constexpr uint32_t registersOfSm = 65536, most = 255;
  return std::min(most, registersOfSm / (threads * function.minnctapersm)) / 8 * 8;
}

Warp::Warp(Cta &cta, unsigned index, Mask existing)
    : cta(cta), cluster(cta.cluster), program(cluster.program), index(index), alive(existing),
      constants(program.constants.data()), args(program.args.data()), rowStorage(program.numRows),
      preds(program.numPreds) {
  rows = rowStorage.data();
  if (!rowStorage.empty())
    std::memset(static_cast<void *>(rows), 0xff, rowStorage.size() * sizeof(Row)); // NaNs, all ones: easy to notice
  preds[1] = allLanes;
  local.assign(size_t(program.localBytes) * numLanes, std::byte(0xff));
  groups.emplace_back();
  groups.back().mask = existing;
  fillSpecials();
  cta.registers.held[index] = registersAtEntry(program.function);
}

// --- Special registers

namespace {
/// Where the driver tells the kernel of a cooperative launch the workspace of its grid.
constexpr StringLiteral workspaceHigh = "%envreg1", workspaceLow = "%envreg2";

unsigned componentOf(char letter) { return letter == 'x' ? 0 : letter == 'y' ? 1 : letter == 'z' ? 2 : 3; }

/// The vector registers; nullopt when `name` is none of them.
std::optional<uint32_t> vectorSpecial(StringRef name, const Warp &warp, uint32_t thread) {
  auto [stem, letter] = name.split('.');
  if (letter.size() != 1)
    return std::nullopt;
  const Cluster &cluster = warp.cluster;
  const LaunchParams &params = cluster.launch.params;
  unsigned c = componentOf(letter[0]);
  if (c == 3) // the fourth component: 0 for an index, 1 for a size
    return stem == "%ntid" || stem.starts_with("%ncta") || stem == "%nclusterid" || stem == "%cluster_nctaid";
  auto [x, y, z] = params.block;
  uint32_t tid[3] = {thread % x, thread / x % y, thread / x / y};
  return StringSwitch<std::optional<uint32_t>>(stem)
      .Case("%tid", tid[c])
      .Case("%ntid", params.block[c])
      .Case("%ctaid", warp.cta.id[c])
      .Case("%nctaid", params.grid[c])
      .Case("%clusterid", cluster.id[c])
      .Case("%nclusterid", cluster.launch.numClusters[c])
      .Case("%cluster_ctaid", warp.cta.id[c] % params.cluster[c])
      .Case("%cluster_nctaid", params.cluster[c])
      .Default(std::nullopt);
}
std::optional<uint64_t> scalarSpecial(StringRef name, const Warp &warp, unsigned lane) {
  const LaunchParams &params = warp.cluster.launch.params;
  const Program &program = warp.program;
  uint32_t sharedBytes = std::max(program.staticShared, program.dynamicOffset + params.dynamicShared);
  Mask below = (Mask(1) << lane) - 1, self = Mask(1) << lane;
  return StringSwitch<std::optional<uint64_t>>(name)
      .Case("%laneid", lane)
      .Case("%warpid", warp.index)
      .Case("%nwarpid", (warp.cta.numThreads + numLanes - 1) / numLanes)
      .Case("%smid", warp.cta.rank)
      .Case("%nsmid", warp.cluster.ctas.size())
      .Case("%gridid", 1)
      .Case("%lanemask_eq", self)
      .Case("%lanemask_lt", below)
      .Case("%lanemask_le", below | self)
      .Case("%lanemask_gt", ~(below | self))
      .Case("%lanemask_ge", ~below)
      .Case("%cluster_ctarank", warp.cta.rank)
      .Case("%cluster_nctarank", warp.cluster.ctas.size())
      .Case("%dynamic_smem_size", params.dynamicShared)
      .Case("%total_smem_size", sharedBytes)
      .Case("%aggr_smem_size", sharedBytes)
      .Case(workspaceHigh, warp.cluster.launch.gridWorkspace >> 32)
      .Case(workspaceLow, warp.cluster.launch.gridWorkspace & 0xffffffff)
      .Default(std::nullopt);
}
} // namespace

bool isSpecialModelled(StringRef name) {
  auto [stem, letter] = name.split('.');
  return StringSwitch<bool>(stem)
      .Cases("%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
             letter.size() == 1)
      .Cases("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", true)
      .Cases("%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge", true)
      .Cases("%cluster_ctarank", "%cluster_nctarank", "%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size", true)
      .Cases(workspaceHigh, workspaceLow, true)
      .Default(false);
}

bool isCooperative(const Program &program) {
  return any_of(program.specials,
                [](const SpecialSlot &one) { return one.name == workspaceHigh || one.name == workspaceLow; });
}

void Warp::fillSpecials() {
  for (const SpecialSlot &special : program.specials)
    for (unsigned l = 0; l < numLanes; ++l) {
      std::optional<uint64_t> value = vectorSpecial(special.name, *this, thread(l));
      if (!value)
        value = scalarSpecial(special.name, *this, l);
      Arg arg;
      arg.bits = special.bits;
      arg.slot = special.slot;
      set(arg, l, value.value_or(0));
    }
  for (const SymbolSlot &symbol : program.symbols)
    for (unsigned l = 0; l < numLanes; ++l) {
      Arg arg;
      arg.bits = symbol.bits;
      arg.slot = symbol.slot;
      set(arg, l, (uint64_t(cta.rank) << window::rankShift) + symbol.offset + (cluster.exact ? symbol.shift : 0));
    }
}

// --- Values and findings

void Warp::set(const Arg &arg, unsigned lane, uint64_t value) {
  if (arg.bits > 32)
    write<uint64_t>(arg)[lane] = value;
  else
    write<uint32_t>(arg)[lane] = arg.bits == 32 ? value : value & ((1u << arg.bits) - 1);
}

static Step report(Warp &warp, Verdict verdict, const Code &code, unsigned lane, StringRef rule, const Twine &message) {
  warp.cluster.note(verdict, rule, message, warp, code, lane);
  warp.cluster.failed = true;
  return Step::Stop;
}
Step Warp::fail(const Code &code, unsigned lane, StringRef rule, const Twine &message) {
  return report(*this, Verdict::error, code, lane, rule, message);
}
Step Warp::incomplete(const Code &code, unsigned lane, StringRef rule, const Twine &message) {
  return report(*this, Verdict::incomplete, code, lane, rule, message);
}

Step unmodelled(Warp &warp, const Code &code, Mask mask) {
  std::string what = code.inst ? code.inst->mnemonic() : "", hint;
  if (code.inst)
    for (const ptx::Operand &operand : code.inst->ops)
      if (operand.kind == ptx::Operand::Special && !isSpecialModelled(operand.name))
        what = operand.name;
  if (StringRef(what).starts_with("%envreg"))
    hint = ", which the driver sets and no manual describes (%envreg1 and %envreg2 are the workspace of grid.sync()): "
           "write the value that the kernel wants there, as in `mov.u32 r, 0;`";
  return warp.incomplete(code, firstLane(mask), "unmodelled", "the emulator does not model `" + what + "`" + hint);
}

// --- Memory

namespace {
struct Window {
  std::byte *data = nullptr;
  std::string problem; ///< Why there is no such memory.
  const char *rule = nullptr;
};

enum class User : uint8_t { Other, Mbarrier, Matrix, Copy, Bulk, Map };
bool isStrong(const ptx::Inst &inst) { return inst.has("relaxed") || inst.has("acquire") || inst.has("release"); }
/// Whose rules an address must keep beside those of every access.
User userOf(const Code &code) {
  using ptx::Op;
  if (!code.inst)
    return User::Other;
  switch (code.inst->op) {
  case Op::MbarrierInit:
  case Op::MbarrierInval:
  case Op::MbarrierExpectTx:
  case Op::MbarrierCompleteTx:
  case Op::MbarrierArrive:
  case Op::MbarrierArriveExpectTx:
  case Op::MbarrierArriveNoComplete:
  case Op::MbarrierDrop:
  case Op::MbarrierDropExpectTx:
  case Op::MbarrierDropNoComplete:
  case Op::MbarrierTestWait:
  case Op::MbarrierTestWaitParity:
  case Op::MbarrierTryWait:
  case Op::MbarrierTryWaitParity:
  case Op::CpAsyncMbarrier:
    return User::Mbarrier;
  case Op::Ldmatrix:
  case Op::Stmatrix:
    return User::Matrix;
  case Op::CpAsync:
  case Op::CpAsyncIgnore:
    return User::Copy;
  case Op::CpBulkLoad:
  case Op::CpBulkCluster:
  case Op::CpBulkStore:
  case Op::CpBulkPrefetch:
  case Op::CpReduceGlobal:
  case Op::CpReduceCluster:
  case Op::CpTensorLoad:
  case Op::CpTensorStore:
  case Op::CpReduceTensor:
    return User::Bulk;
  case Op::PrefetchMap:
  case Op::CpTensorPrefetch:
  case Op::TensormapField:
  case Op::TensormapDim:
  case Op::TensormapCopy:
    return User::Map;
  default:
    return User::Other;
  }
}
const char *ruleOfAlignment(const Code &code, unsigned align) {
  switch (userOf(code)) {
  case User::Mbarrier:
    return "MB-23";
  case User::Matrix:
    return "MM-2";
  case User::Copy:
    return "CA-2";
  case User::Bulk: // the map, the mbarrier, the data
    return align == 64 ? "TM-10" : align == 8 ? "MB-23" : "TM-7";
  case User::Map:
    return "TM-10";
  default:
    return "AD-1";
  }
}
/// A generic address is in a window that is none for the instruction: which rule is broken, and what is wrong.
std::pair<const char *, const char *> wrongSpace(const Warp &warp, const Code &code, Where space, uint64_t offset) {
  using ptx::Op;
  const bool isShared = space == Where::SharedCluster, isModule = space == Where::Const;
  const bool isOwn = isShared && offset >> window::rankShift == warp.cta.rank;
  const bool isConstant = isModule && offset < warp.program.constBytes; // variables of the module lie behind them
  const bool isReadOnly = isConstant || space == Where::Param;
  const bool isGlobal = space == Where::Global || (isModule && !isConstant);
  const Op op = code.inst->op;
  switch (op) {
  case Op::Ldmatrix:
  case Op::Stmatrix:
    return {isOwn ? nullptr : "MM-3", "is not in the CTA's shared memory"};
  case Op::WmmaLoad:
  case Op::WmmaLoadC:
  case Op::WmmaStore:
    return {isOwn || isGlobal ? nullptr : "MM-3", "is not in global memory or the CTA's shared memory"};
  case Op::TensormapField:
  case Op::TensormapDim:
    return {isOwn || isGlobal ? nullptr : "FP-9", "is not in global memory or the CTA's shared memory"};
  case Op::St:
    if (isReadOnly)
      return {"AD-5", "is in memory that is only read"};
    [[fallthrough]];
  case Op::Ld:
    return {space == Where::Local && !code.inst->has("volatile") && isStrong(*code.inst) ? "AD-4" : nullptr,
            "is in local memory, where .relaxed, .acquire and .release mean nothing"};
  case Op::Atom:
  case Op::AtomCas:
  case Op::Red:
    return {isReadOnly ? "AD-5" : space == Where::Local ? "AD-4" : nullptr, "is not in global or shared memory"};
  default:
    return {userOf(code) == User::Mbarrier && !isShared ? "MB-24" : nullptr, "is not in shared memory"};
  }
}

Window sharedWindow(Warp &warp, Where where, uint64_t address, uint64_t bytes) {
  uint64_t rank = address >> window::rankShift, offset = address & ((1u << window::rankShift) - 1);
  if (where == Where::Shared && rank != warp.cta.rank)
    return {nullptr,
            formatv("is in the window of CTA {0} of the cluster, not of the executing CTA {1}", rank, warp.cta.rank),
            "AD-6"};
  if (rank >= warp.cluster.ctas.size())
    return {nullptr, formatv("is in the window of CTA {0}; the cluster has {1}", rank, warp.cluster.ctas.size()),
            "AD-7"};
  Cta &cta = *warp.cluster.ctas[rank];
  if (rank != warp.cta.rank && cta.done())
    return {nullptr, formatv("is in the window of CTA {0} of the cluster, which has exited", rank), "CL-7"};
  if (offset < window::sharedBase || offset + bytes > cta.shared.size())
    return {nullptr,
            formatv("is outside the CTA's {0} bytes of shared memory ({1:x} to {2:x})",
                    cta.shared.size() - window::sharedBase, window::sharedBase, cta.shared.size()),
            "AD-2"};
  return {cta.shared.data() + offset, ""};
}
Window bytesOf(std::vector<std::byte> &storage, uint64_t offset, uint64_t bytes, const char *what) {
  if (offset > storage.size() || bytes > storage.size() - offset)
    return {nullptr, formatv("is outside {0} ({1} bytes)", what, storage.size()), "AD-5"};
  return {storage.data() + offset, ""};
}
Window globalWindow(Warp &warp, uint64_t address, uint64_t bytes) {
  if (std::byte *data = warp.cluster.global(address, bytes))
    return {data, ""};
  auto near = warp.cluster.launch.memory.nearest(address);
  if (!near)
    return {nullptr, "is in no allocation: there is none", "AD-3"};
  return {nullptr,
          formatv("is in no allocation; the nearest is {0:x} to {1:x} ({2} bytes)", near->begin,
                  near->begin + near->size, near->size),
          "AD-3"};
}
} // namespace

std::byte *Warp::anyMemory(Where where, uint64_t address, uint64_t bytes, unsigned align, unsigned lane,
                           const Code &code) {
  uint64_t offset = address;
  Where space = where;
  if (where == Where::Generic || where == Where::Global || where == Where::Const || where == Where::Param) {
    // Only generic addresses reach all windows; the others have windows of their own.
    uint64_t which = address / window::size;
    if (where == Where::Generic && (which == 1 || which == 2)) {
      space = which == 1 ? Where::SharedCluster : Where::Local;
      offset = address % window::size;
    } else if (which == 3 && where != Where::Global)
      space = Where::Param, offset = address % window::size;
    else if (which == 4 && where != Where::Param)
      space = Where::Const, offset = address % window::size;
    else
      space = where == Where::Generic ? Where::Global : where;
  }
  Window found;
  auto [rule, problem] = where == Where::Generic && code.where == Where::Generic && code.inst
                             ? wrongSpace(*this, code, space, offset)
                             : std::pair<const char *, const char *>();
  if (rule) {
    found.problem = problem;
    found.rule = rule;
  } else if (align & (align - 1) || address % align) {
    found.problem = formatv("is not aligned to {0} bytes", align);
    found.rule = ruleOfAlignment(code, align);
  } else if (space == Where::Shared || space == Where::SharedCluster)
    found = sharedWindow(*this, space, offset, bytes);
  else if (space == Where::Local) {
    if (offset + bytes > program.localBytes || offset > program.localBytes) {
      found.problem = formatv("is outside the thread's {0} bytes of local memory", program.localBytes);
      found.rule = "AD-4";
    } else
      found.data = local.data() + size_t(lane) * program.localBytes + offset;
  } else if (space == Where::Param && offset != address)
    found = bytesOf(cluster.params, offset - program.paramBase, bytes, "the kernel's parameters");
  else if (space == Where::Const && offset != address)
    found = bytesOf(*cluster.launch.module, offset, bytes, "the module's variables");
  else if (space == Where::Global)
    found = globalWindow(*this, address, bytes);
  else
    found.problem = formatv("is not an address of the {0} space", nameOf(space));
  if (found.rule == StringRef("AD-2") && userOf(code) == User::Bulk && align != 8)
    found.rule = "TM-11";
  constexpr uint64_t inWindow = (1u << window::rankShift) - 1;
  if (!found.data)
    fail(code, lane, found.rule ? found.rule : "AD-5",
         formatv("access of {0} bytes at {1} {2}", bytes,
                 (space == Where::Shared || space == Where::SharedCluster) && spotAt(cluster, offset & inWindow)
                     ? describeShared(cluster, offset)
                     : formatv("{0} address {1:x}", nameOf(where), address).str(),
                 found.problem)
             .str());
  return found.data;
}

// --- Groups of lanes

namespace {
/// What is broken when some of the lanes that must execute an instruction together do not.
const char *ruleOfConvergence(const Warp &warp, const Code &code, Mask mask) {
  using ptx::Op;
  StringRef name = ptx::nameOf(code.inst->op);
  if (name.starts_with("Wgmma"))
    return "WG-4";
  if (name.starts_with("Mma") || name.starts_with("Wmma") || name.ends_with("matrix"))
    return "MM-1";
  switch (code.inst->op) {
  case Op::ClusterArrive:
  case Op::ClusterWait:
    return "CL-3";
  case Op::SetMaxNReg:
    return "SR-2";
  case Op::Elect:
    return "EL-2";
  case Op::TensormapCopy:
    return "FP-6";
  case Op::Shfl:
  case Op::Vote:
  case Op::VoteBallot:
  case Op::Match:
  case Op::Redux:
    return "WS-2";
  default:
    return mask == warp.lastElected ? "NB-10" : "NB-2";
  }
}
} // namespace

std::optional<Step> Warp::converge(const Code &code, Mask mask, Mask wanted) {
  Wait &wait = group().wait;
  if (wait.what == Wait::Converge)
    wait.what = Wait::None;
  Mask missing = wanted & ~mask;
  if (!missing)
    return std::nullopt;
  if (Mask skipped = missing & group().mask)
    return fail(
        code, firstLane(skipped), ruleOfConvergence(*this, code, mask),
        formatv("lane {0} does not execute this instruction, as its guard is false, but lane {1} does: all lanes "
                "must execute it together",
                firstLane(skipped), firstLane(mask))
            .str());
  wait.what = Wait::Converge;
  wait.lanes = wanted;
  return Step::Block;
}

Step Warp::branch(Mask taken, uint32_t target) {
  Group &here = group();
  if (taken == here.mask) {
    here.pc = target;
    return Step::Jump;
  }
  here.mask &= ~taken;
  ++here.pc;
  Group other;
  other.pc = target;
  other.mask = taken;
  groups.push_back(other);
  return Step::Regroup;
}

Step Warp::exit(Mask mask) {
  if (cluster.check)
    cluster.check->exit(*this, mask);
  alive &= ~mask;
  async.finishCopies(mask);
  forLanes(mask, [&](unsigned l) { cluster.async.finish(*this, l); });
  Group &here = group();
  uint32_t pc = here.pc;
  here.mask &= ~mask;
  ++here.pc;
  if (!here.mask)
    groups.erase(groups.begin() + current);
  ++cluster.version;
  cta.exited();
  if (sem::stepClusterBarrier(cluster.barrier, {sem::ClusterBarrierCommand::exit, number(), mask}).opened &&
      cluster.check)
    cluster.check->clusterOpened();
  if (!alive)
    if (sem::Broken broken =
            sem::stepRegisterPool(cta.registers, {sem::RegisterPoolCommand::exit, index, 0, unsigned(cta.warps.size())})
                .broken)
      return fail(program.code[pc], firstLane(mask), broken.rule, broken.text);
  return Step::Regroup;
}

/// Joins groups that stand at the same instruction, then picks the one that is furthest behind and not stuck.
Group *Warp::choose() {
  for (unsigned i = 0; i < groups.size(); ++i)
    for (unsigned j = groups.size(); j-- > i + 1;) {
      Group &a = groups[i], &b = groups[j];
      if (a.pc != b.pc || a.wait.arrived || b.wait.arrived)
        continue;
      Mask lanes =
          (a.wait.what == Wait::Converge ? a.wait.lanes : 0) | (b.wait.what == Wait::Converge ? b.wait.lanes : 0);
      a.mask |= b.mask;
      a.stuck = false;
      a.wait = Wait();
      a.wait.what = lanes ? Wait::Converge : Wait::None;
      a.wait.lanes = lanes;
      groups.erase(groups.begin() + j);
    }
  Group *best = nullptr;
  for (Group &group : groups)
    if (!group.stuck && (!best || group.pc < best->pc))
      best = &group;
  if (best)
    current = best - groups.data();
  return best;
}

bool Warp::run(uint64_t budget) {
  for (Group &group : groups)
    group.stuck = false;
  bool progress = false;
  const Code *const code = program.code.data();
  Check *const check = cluster.check.get();
  while (Group *chosen = choose()) {
    uint32_t limit = ~0u; // where it meets, or passes, another group
    for (Group &other : groups)
      if (&other != chosen && other.pc > chosen->pc)
        limit = std::min(limit, other.pc);
    uint32_t pc = chosen->pc;
    const Mask lanes = chosen->mask;
    for (bool regroup = false; !regroup;) {
      const Code &here = code[pc];
      Mask mask = lanes;
      if (here.guard >= 0)
        mask &= preds[here.guard] ^ (here.guardNegated ? allLanes : 0);
      Step step = Step::Next;
      if (mask) {
        groups[current].pc = pc;
        if (check) {
          check->executes(pc);
          check->registers(*this, here);
        }
        step = here.run(*this, here, mask);
      }
      switch (step) {
      case Step::Yield: // other lanes of the warp have their turn, too
        groups[current].stuck = regroup = true;
        groups[current].pc = pc + 1;
        [[fallthrough]];
      case Step::Next:
        if (groups[current].wait.what != Wait::None) {
          if (cluster.timeline)
            cluster.timeline->passed(*this, groups[current]);
          groups[current].wait = Wait();
        }
        ++pc;
        break;
      case Step::Jump:
        pc = groups[current].pc;
        break;
      case Step::Block:
        if (cluster.timeline)
          cluster.timeline->blocked(*this, groups[current]);
        groups[current].stuck = true;
        regroup = true;
        continue;
      case Step::Regroup:
        regroup = true;
        break;
      case Step::Stop:
        return progress;
      }
      progress = true;
      ++cluster.steps;
      if (!regroup)
        groups[current].pc = pc;
      if (!--budget)
        return true;
      regroup |= pc >= limit;
    }
  }
  return progress;
}

} // namespace gemmc::emu
