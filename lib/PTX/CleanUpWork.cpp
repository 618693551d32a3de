#include "CleanUpWork.h"
#include "llvm/ADT/STLExtras.h"

namespace gemmc::ptx {

bool commutes(Op op) {
  switch (op) {
  case Op::Add:
  case Op::Mul:
  case Op::MulWide:
  case Op::Mad:
  case Op::MadWide:
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::Min:
  case Op::Max:
    return true;
  default:
    return false;
  }
}

/// Whether a special register has the same value at every read by a thread (`%tid.x`, but not `%clock`).
static bool isStable(const Operand &special) {
  constexpr llvm::StringLiteral prefixes[] = {
      "%tid",      "%ntid",     "%ctaid",       "%nctaid",     "%laneid",    "%clusterid",    "%nclusterid",
      "%cluster_", "%lanemask", "%is_explicit", "%total_smem", "%aggr_smem", "%dynamic_smem", "WARP_SZ"};
  return llvm::any_of(prefixes,
                      [&](llvm::StringRef prefix) { return llvm::StringRef(special.name).starts_with(prefix); });
}

bool isWorthKeeping(const Work &work, const Inst &inst) {
  if (effectOf(inst.op) != Effect::Pure || !inst.ops[0].isReg() || !work.flow.isValue(inst.ops[0].reg))
    return false;
  if (inst.op == Op::Mov && (inst.ops[1].isImm() || inst.ops[1].isReg()))
    return false;
  const Row &row = rowOf(inst.op);
  for (unsigned i = 1; i < inst.ops.size(); ++i) {
    const Operand &operand = inst.ops[i];
    if (row.operands[i].access != Access::Read && operand.kind != Operand::None)
      return false;
    if (operand.kind == Operand::Special && !isStable(operand))
      return false;
  }
  return true;
}

namespace {
/// Comment lines that stand together, and the statements up to the next comment or label: what they comment.
struct Paragraph {
  uint32_t begin, text, end; ///< Comments in [begin, text), the rest in [text, end).
};

/// The next paragraph at or behind `from`; begin == end when there is none.
Paragraph nextParagraph(llvm::ArrayRef<Stmt> body, uint32_t from) {
  uint32_t size = body.size();
  while (from < size && body[from].kind != Stmt::Comment)
    ++from;
  Paragraph found{from, from, from};
  while (found.text < size && body[found.text].kind == Stmt::Comment)
    ++found.text;
  found.end = found.text;
  while (found.end < size && body[found.end].kind != Stmt::Comment && body[found.end].kind != Stmt::Label)
    ++found.end;
  return found;
}
} // namespace

void Work::apply() {
  if (!changed)
    return;
  auto &body = function.body;
  uint32_t size = body.size();
  std::vector<uint8_t> moved(size);
  for (const Move &move : moves)
    for (uint32_t stmt : move.stmts)
      moved[stmt] = true;

  // Comments that lose all their instructions are gone, or move in front of `leader`.
  std::vector<std::pair<uint32_t, Paragraph>> leaders;
  for (Paragraph p = nextParagraph(body, 0); p.begin != p.end; p = nextParagraph(body, p.end)) {
    bool any = false, all = true;
    uint32_t leader = size;
    for (uint32_t i = p.text; i < p.end; ++i) {
      if (body[i].kind != Stmt::Instruction)
        continue;
      any = true;
      all &= gone[i];
      if (moved[i] && leader == size)
        leader = i;
    }
    if (!any || !all)
      continue;
    std::fill(gone.begin() + p.begin, gone.begin() + p.text, true);
    if (leader != size)
      leaders.push_back({leader, p});
  }

  std::vector<Stmt> rebuilt;
  rebuilt.reserve(size);
  auto emitMoved = [&](const Move &move) {
    for (uint32_t stmt : move.stmts) {
      auto led = llvm::partition_point(leaders, [&](auto &one) { return one.first < stmt; });
      if (led != leaders.end() && led->first == stmt)
        for (uint32_t i = led->second.begin; i < led->second.text; ++i)
          rebuilt.push_back(std::move(body[i]));
      rebuilt.push_back(std::move(body[stmt]));
    }
  };
  llvm::stable_sort(moves, [](const Move &a, const Move &b) { return a.before < b.before; });
  auto move = moves.begin();
  bool dropped = false;
  for (uint32_t i = 0; i < size; ++i) {
    for (; move != moves.end() && move->before == i; ++move)
      emitMoved(*move);
    bool doubleBlank =
        body[i].kind == Stmt::Blank && dropped && (rebuilt.empty() || rebuilt.back().kind == Stmt::Blank);
    if (!gone[i] && !doubleBlank)
      rebuilt.push_back(std::move(body[i]));
    dropped = gone[i] || doubleBlank || (dropped && body[i].kind == Stmt::Blank);
  }
  body = std::move(rebuilt);
  function.names.seenLabels = false;
}

} // namespace gemmc::ptx
