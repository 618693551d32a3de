// `add r, a, 16; ld [r + 4]` -> `ld [a + 20]`. The add is left for the removal of dead code.
#include "CleanUpEval.h"
#include "CleanUpWork.h"
#include "Registers.h"
#include "llvm/Support/MathExtras.h"

namespace gemmc::ptx {
namespace {
/// `base` + `offset` bytes.
struct Place {
  RegId base;
  int64_t offset;
};

class AddressFolder {
public:
  explicit AddressFolder(Work &work)
      : work(work), sums(work.function.regs.size()), lastDef(work.function.regs.size(), Flow::none) {}

  void run() {
    for (uint32_t block : work.flow.order)
      for (uint32_t i = work.flow.blocks[block].begin; i < work.flow.blocks[block].end; ++i)
        if (work.live(i)) {
          Inst &inst = work.inst(i);
          for (Operand &operand : inst.ops)
            if (operand.kind == Operand::Address && operand.hasReg && operand.elems.empty())
              fold(operand, i);
          learn(inst, i);
          visitWrites(inst, [&](RegId reg) { lastDef[reg] = i; });
        }
  }

private:
  struct Sum {
    bool known = false;
    Place place{};
    uint32_t stmt = 0; ///< Where the base was read.
  };

  /// `base` still holds at `stmt` what the sum read. A value always does; another register only inside the block.
  bool holds(const Sum &sum, uint32_t stmt) const {
    RegId base = sum.place.base;
    if (work.flow.isValue(base))
      return true;
    bool sameBlock = work.flow.blockOf[sum.stmt] == work.flow.blockOf[stmt];
    return sameBlock && (lastDef[base] == Flow::none || lastDef[base] < sum.stmt ||
                         work.flow.blockOf[lastDef[base]] != work.flow.blockOf[stmt]);
  }

  void fold(Operand &address, uint32_t stmt) {
    for (unsigned step = 0; step < 2; ++step) { // sums of values are already the sum of their root
      const Sum &sum = sums[address.reg];
      int64_t offset = address.imm + sum.place.offset;
      if (!sum.known || !holds(sum, stmt) || !llvm::isInt<32>(offset))
        return;
      address.reg = sum.place.base;
      address.imm = offset;
      work.changed = true;
    }
  }

  void learn(const Inst &inst, uint32_t stmt) {
    if ((inst.op != Op::Add && inst.op != Op::Sub) || inst.has("sat"))
      return;
    const Operand &dst = inst.ops[0], &base = inst.ops[1], &offset = inst.ops[2];
    auto type = IntType::of(inst.type());
    if (!type || type->bits < 32 || !base.isReg() || !offset.isImm() || !work.flow.isValue(dst.reg))
      return;
    // A 32-bit offset near 2^32 is a step back: addresses wrap.
    uint64_t bits = inst.op == Op::Add ? uint64_t(offset.imm) : -uint64_t(offset.imm);
    int64_t bytes = static_cast<int64_t>(IntType{type->bits, true}.wide(type->cut(bits)));
    Sum sum{true, {base.reg, bytes}, stmt};
    const Sum &inner = sums[base.reg];
    int64_t total;
    if (work.flow.isValue(base.reg) && inner.known && work.flow.isValue(inner.place.base) &&
        !__builtin_add_overflow(bytes, inner.place.offset, &total) && llvm::isInt<32>(total))
      sum = {true, {inner.place.base, total}, inner.stmt};
    sums[dst.reg] = sum;
  }

  Work &work;
  std::vector<Sum> sums;         ///< By register; values only.
  std::vector<uint32_t> lastDef; ///< By register: the definition seen last in the walk.
};
} // namespace

void foldAddresses(Work &work) { AddressFolder(work).run(); }

} // namespace gemmc::ptx
