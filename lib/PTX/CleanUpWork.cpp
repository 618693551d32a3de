#include "CleanUpWork.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>

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

void Work::settleComments() {
  const auto &body = function.body;
  std::vector<uint8_t> moved(moves.empty() ? 0 : body.size());
  for (const Move &move : moves)
    for (uint32_t stmt : move.stmts)
      moved[stmt] = true;
  for (Paragraph p = nextParagraph(body, 0); p.begin != p.end; p = nextParagraph(body, p.end)) {
    bool any = false, all = true;
    uint32_t leader = Flow::none;
    for (uint32_t i = p.text; i < p.end; ++i) {
      if (body[i].kind != Stmt::Instruction)
        continue;
      any = true;
      all &= gone[i];
      if (!moves.empty() && moved[i] && leader == Flow::none)
        leader = i;
    }
    if (!any || !all)
      continue;
    std::fill(gone.begin() + p.begin, gone.begin() + p.text, true);
    if (leader == Flow::none)
      continue;
    for (Move &move : moves)
      if (auto at = llvm::find(move.stmts, leader); at != move.stmts.end()) {
        for (uint32_t i = p.begin; i < p.text; ++i)
          at = move.stmts.insert(at, i) + 1;
        break;
      }
  }
}

void Work::apply() {
  if (!changed)
    return;
  settleComments();
  auto &body = function.body;
  // In place: what moves goes up, so it is taken out first, and a statement for which there is no room yet waits.
  llvm::stable_sort(moves, [](const Move &a, const Move &b) { return a.before < b.before; });
  std::vector<std::vector<Stmt>> taken(moves.size());
  for (auto [move, stmts] : llvm::zip_equal(moves, taken))
    for (uint32_t stmt : move.stmts)
      stmts.push_back(std::move(body[stmt]));
  std::deque<Stmt> waiting;
  uint32_t to = 0;
  auto flush = [&](uint32_t room) {
    for (; !waiting.empty() && to < room; waiting.pop_front())
      body[to++] = std::move(waiting.front());
  };
  size_t next = 0;
  bool dropped = false, lastIsBlank = true;
  for (uint32_t i = 0; i < body.size(); ++i) {
    for (; next < moves.size() && moves[next].before == i; ++next, lastIsBlank = false)
      llvm::move(taken[next], std::back_inserter(waiting));
    bool isBlank = body[i].kind == Stmt::Blank;
    bool keep = !gone[i] && !(isBlank && dropped && lastIsBlank);
    if (keep && !waiting.empty())
      waiting.push_back(std::move(body[i]));
    else if (keep && to++ < i)
      body[to - 1] = std::move(body[i]);
    flush(i + 1);
    lastIsBlank = keep ? isBlank : lastIsBlank;
    dropped = !keep || (dropped && isBlank);
  }
  flush(body.size());
  assert(waiting.empty() && "statements move, they never become more");
  body.resize(to);
  function.names.seenLabels = false;
}

} // namespace gemmc::ptx
