// Random programs store the same values before and after clean-up. The judge is a little interpreter of its own.
#include "Pace.h"
#include "gemmc/PTX/CleanUp.h"
#include "gemmc/PTX/Ops.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"
#include <map>
#include <random>

using namespace gemmc;
using namespace gemmc::ptx;

namespace {

// --- Programs

/// Writes structured programs with all that makes PTX hard to rewrite: registers written several times, guards, loops
/// with a second way in, jumps out of them, registers that are read where nothing was written.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  std::string program() {
    for (unsigned i = 0; i < 3; ++i)
      line("ld.shared.u32 " + write() + ", [%k0+" + std::to_string(4 * i) + "];");
    sequence(0);
    for (unsigned i = 0; i < 3; ++i)
      line("st.shared.u32 [%k0], " + read() + ";");
    line("st.shared.u64 [%k0+8], " + readWide() + ";");
    line("ret;");
    std::string text = ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n";
    text += llvm::formatv(".reg .b32 %r<{0}>;\n.reg .b64 %d<{1}>;\n.reg .pred %p<{2}>;\n.reg .b32 %c<{3}>;\n", fresh,
                          wideFresh, predFresh, counters + 1)
                .str();
    return text + ".reg .b32 %k0;\nmov.u32 %k0, 0;\n" + body + "}\n";
  }

private:
  unsigned pick(unsigned count) { return random() % count; }
  bool chance(unsigned percent) { return pick(100) < percent; }
  void line(const std::string &text) { body += text + "\n"; }

  std::string constant() {
    static const int64_t values[] = {0, 1, 2, 3, 4, 8, 16, 31, 32, 64, -1, -16, 255, 2147483647, -2147483648ll};
    return std::to_string(chance(70) ? values[pick(std::size(values))] : int32_t(random()));
  }
  /// Mostly a register that was written on the way here.
  std::string read() {
    unsigned number = chance(92) && !visible.empty() ? visible[pick(visible.size())] : pick(fresh);
    return "%r" + std::to_string(number);
  }
  std::string source() { return chance(30) ? constant() : counters && chance(15) ? counter() : read(); }
  std::string counter() { return "%c" + std::to_string(pick(counters)); }
  std::string readWide() { return "%d" + std::to_string(chance(70) ? wideFresh - 1 : pick(wideFresh)); }
  std::string predicate() { return "%p" + std::to_string(pick(predFresh)); }
  std::string write() {
    unsigned number = chance(85) ? fresh++ : pick(fresh);
    visible.push_back(number);
    return "%r" + std::to_string(number);
  }
  std::string writeWide() { return "%d" + std::to_string(chance(65) ? wideFresh++ : pick(wideFresh)); }
  std::string writePredicate() { return "%p" + std::to_string(chance(65) ? predFresh++ : pick(predFresh)); }
  std::string guard() { return chance(12) ? (chance(50) ? "@!" : "@") + predicate() + " " : ""; }
  std::string oneOf(std::initializer_list<const char *> words) { return words.begin()[pick(words.size())]; }

  void instruction() {
    std::string before = guard();
    if (chance(15) && !last.empty()) // a twin of an earlier instruction
      return line(before + last[0] + write() + last[1]);
    switch (pick(14)) {
    case 0:
    case 1:
    case 2: {
      std::string op = oneOf({"add.u32", "add.s32", "sub.u32", "mul.lo.u32", "mul.hi.s32", "mul.hi.u32", "and.b32",
                              "or.b32", "xor.b32", "shl.b32", "shr.u32", "shr.s32", "min.s32", "max.u32", "div.u32",
                              "rem.u32", "div.s32", "rem.s32"});
      std::string a = source(), b = source();
      if (chance(50))
        last = {op + " ", ", " + a + ", " + b + ";"};
      return line(before + op + " " + write() + ", " + a + ", " + b + ";");
    }
    case 3: {
      std::string a = source(), b = source(), c = source();
      return line(before + "mad.lo.u32 " + write() + ", " + a + ", " + b + ", " + c + ";");
    }
    case 4: {
      std::string a = source();
      return line(before + "mov.u32 " + write() + ", " + a + ";");
    }
    case 5: {
      std::string a = source(), b = source();
      std::string op = oneOf({"eq.u32", "ne.s32", "lt.u32", "lt.s32", "le.s32", "gt.u32", "ge.s32", "hs.u32"});
      return line(before + "setp." + op + " " + writePredicate() + ", " + a + ", " + b + ";");
    }
    case 6: {
      std::string a = source(), b = source(), p = predicate();
      return line(before + "selp.u32 " + write() + ", " + a + ", " + b + ", " + p + ";");
    }
    case 7: {
      std::string a = source(), b = source();
      return line(before + oneOf({"mul.wide.u32 ", "mul.wide.s32 "}) + writeWide() + ", " + a + ", " + b + ";");
    }
    case 8: {
      std::string a = readWide(), b = chance(40) ? constant() : readWide();
      return line(before + oneOf({"add.s64 ", "sub.u64 ", "xor.b64 ", "mul.lo.s64 "}) + writeWide() + ", " + a + ", " +
                  b + ";");
    }
    case 9: {
      if (chance(50)) {
        std::string a = source();
        if (a[0] != '%') {
          std::string value = write();
          line("mov.b32 " + value + ", " + a + ";");
          a = value;
        }
        return line(before + oneOf({"cvt.u64.u32 ", "cvt.s64.s32 "}) + writeWide() + ", " + a + ";");
      }
      std::string a = readWide();
      return line(before + "cvt.u32.u64 " + write() + ", " + a + ";");
    }
    case 10: {
      std::string a = predicate(), b = predicate();
      return line(before + oneOf({"and.pred ", "or.pred ", "xor.pred "}) + writePredicate() + ", " + a + ", " + b +
                  ";");
    }
    case 11: {
      std::string address = place();
      return line(before + oneOf({"ld.shared.u32 ", "ld.volatile.shared.u32 "}) + write() + ", " + address + ";");
    }
    case 12:
      return line(before + "st.shared.u32 " + place() + ", " + source() + ";");
    case 13:
      return line(chance(50) ? "bar.sync 0;" : before + "not.b32 " + write() + ", " + read() + ";");
    }
  }

  /// An address, often a sum with a constant.
  std::string place() {
    std::string base = read();
    if (chance(60)) {
      std::string sum = write();
      line(oneOf({"add.u32 ", "add.s32 ", "sub.u32 "}) + sum + ", " + base + ", " + std::to_string(4 * pick(8)) + ";");
      base = sum;
    }
    return "[" + base + (chance(50) ? "+" + std::to_string(4 * pick(8)) : "") + "]";
  }

  void sequence(unsigned depth) {
    size_t outside = visible.size();
    for (unsigned i = 0, count = 2 + pick(7); i < count; ++i) {
      unsigned what = pick(12);
      if (what == 0 && depth < 3)
        loop(depth);
      else if (what == 1 && depth < 3)
        branch(depth);
      else if (what == 2 && !exits.empty())
        line("@" + predicate() + " bra " + exits[pick(exits.size())] + ";");
      else if (what == 3)
        line("// " + std::to_string(pick(100)));
      else
        instruction();
    }
    if (depth)
      visible.resize(outside);
  }

  void branch(unsigned depth) {
    std::string number = std::to_string(labels++), otherwise = "L_else" + number, end = "L_end" + number;
    line(oneOf({"@!", "@"}) + predicate() + " bra " + otherwise + ";");
    exits.push_back(end);
    sequence(depth + 1);
    if (chance(70))
      line("bra " + end + ";");
    line(otherwise + ":");
    if (chance(50))
      sequence(depth + 1);
    exits.pop_back();
    line(end + ":");
  }

  void loop(unsigned depth) {
    std::string number = std::to_string(labels++), head = "L_loop" + number, end = "L_done" + number;
    std::string count = "%c" + std::to_string(counters++), more = "%p" + std::to_string(predFresh++);
    line("mov.u32 " + count + ", " + std::to_string(pick(3)) + ";");
    if (chance(15))
      line("@" + predicate() + " bra " + head + ";"); // a second way in
    if (chance(30))
      instruction();
    line(head + ":");
    bool testFirst = chance(40);
    auto test = [&](const char *how) { line("setp." + std::string(how) + ".u32 " + more + ", " + count + ", 3;"); };
    if (testFirst) {
      test("ge");
      line("@" + more + " bra " + end + ";");
    }
    exits.push_back(end);
    sequence(depth + 1);
    exits.pop_back();
    line("add.u32 " + count + ", " + count + ", 1;");
    if (!testFirst)
      test("lt");
    line((testFirst ? "" : "@" + more + " ") + "bra " + head + ";");
    line(end + ":");
  }

  std::mt19937 random;
  std::string body;
  unsigned fresh = 4, wideFresh = 2, predFresh = 2, counters = 0, labels = 0;
  std::vector<std::string> exits, last;
  std::vector<unsigned> visible;
};

// --- The judge

struct Store {
  uint32_t address, value;
  friend bool operator==(const Store &, const Store &) = default;
};

/// One thread. Whatever was not written has a value made of its name, so that renumbering changes nothing.
class Interpreter {
public:
  explicit Interpreter(const Function &function) : function(function) {
    for (const Reg &reg : function.regs)
      regs.push_back(cut(llvm::hash_value(llvm::StringRef(reg.name)) * 0x9e3779b97f4a7c15u, bitsOf(reg.type)));
    for (uint32_t i = 0; i < function.body.size(); ++i)
      if (function.body[i].kind == Stmt::Label)
        labels[function.body[i].text] = i;
    memory.resize(1024);
    for (uint32_t i = 0; i < memory.size(); ++i)
      memory[i] = i * 2654435761u;
  }

  /// False when it took too long.
  bool run() {
    for (uint32_t pc = 0, steps = 0; pc < function.body.size(); ++pc) {
      if (function.body[pc].kind != Stmt::Instruction)
        continue;
      if (++steps > 20000)
        return false;
      const Inst &inst = function.body[pc].inst;
      if (inst.guarded && (regs[inst.guard] != 0) == inst.guardNegated)
        continue;
      if (inst.op == Op::Ret)
        return true;
      if (inst.op == Op::Bra)
        pc = labels.at(inst.ops[0].name);
      else
        step(inst);
    }
    return true;
  }

  std::vector<Store> stores;
  unsigned volatileLoads = 0, barriers = 0;

private:
  static uint64_t cut(uint64_t value, unsigned bits) { return bits == 64 ? value : value & ((1ull << bits) - 1); }
  static int64_t extend(uint64_t value, unsigned bits) { return int64_t(value << (64 - bits)) >> (64 - bits); }

  uint64_t get(const Operand &op, unsigned bits) const {
    return cut(op.isReg() ? regs[op.reg] ^ uint64_t(op.negated) : uint64_t(op.imm), bits);
  }
  uint32_t &cell(const Operand &address) {
    uint32_t where = uint32_t(address.hasReg ? regs[address.reg] : 0) + uint32_t(address.imm);
    return memory[(where / 4) % memory.size()];
  }

  void step(const Inst &inst) {
    unsigned bits = inst.op == Op::BarSync ? 0 : bitsOf(inst.type());
    bool isSigned = nameOf(inst.type())[0] == 's';
    auto a = [&] { return get(inst.ops[1], bits); };
    auto b = [&] { return get(inst.ops[2], bits); };
    auto put = [&](uint64_t value, unsigned width) { regs[inst.ops[0].reg] = cut(value, width); };
    auto signedOr = [&](uint64_t x) { return isSigned ? extend(x, bits) : int64_t(x); };
    switch (inst.op) {
    case Op::Add:
      return put(a() + b(), bits);
    case Op::Sub:
      return put(a() - b(), bits);
    case Op::Mul:
      return put(inst.has("lo") ? a() * b() : uint64_t(signedOr(a())) * uint64_t(signedOr(b())) >> 32, bits);
    case Op::MulWide:
      return put(uint64_t(signedOr(a())) * uint64_t(signedOr(b())), 64);
    case Op::Mad:
      return put(a() * b() + get(inst.ops[3], bits), bits);
    case Op::Div:
      return put(b() ? uint64_t(signedOr(a()) / signedOr(b())) : 77, bits);
    case Op::Rem:
      return put(b() ? uint64_t(signedOr(a()) % signedOr(b())) : 78, bits);
    case Op::And:
      return put(a() & b(), bits);
    case Op::Or:
      return put(a() | b(), bits);
    case Op::Xor:
      return put(a() ^ b(), bits);
    case Op::Not:
      return put(~a(), bits);
    case Op::Min:
      return put(signedOr(a()) < signedOr(b()) ? a() : b(), bits);
    case Op::Max:
      return put(signedOr(a()) > signedOr(b()) ? a() : b(), bits);
    case Op::Shl: {
      uint64_t by = get(inst.ops[2], 32);
      return put(by > 31 ? 0 : a() << by, bits);
    }
    case Op::Shr: {
      uint64_t by = std::min<uint64_t>(get(inst.ops[2], 32), 63);
      return put(uint64_t(signedOr(a()) >> by), bits);
    }
    case Op::Mov:
      return put(inst.type() == Type::pred ? a() : a(), bits);
    case Op::Selp:
      return put(get(inst.ops[3], 1) ? a() : b(), bits);
    case Op::Setp:
      return setp(inst, signedOr(get(inst.ops[2], bits)), signedOr(get(inst.ops[3], bits)));
    case Op::Cvt: {
      unsigned from = bitsOf(operandType(inst, 1)), to = bitsOf(operandType(inst, 0));
      uint64_t value = get(inst.ops[1], from);
      return put(nameOf(operandType(inst, 1))[0] == 's' ? extend(value, from) : value, to);
    }
    case Op::Ld:
      volatileLoads += inst.has("volatile");
      return put(cell(inst.ops[1].kind == Operand::Address ? inst.ops[1] : inst.ops[0]), 32);
    case Op::St: {
      uint32_t &to = cell(inst.ops[0]);
      uint64_t value = get(inst.ops[1], bits);
      to = value;
      if (bits == 64)
        stores.push_back({~uint32_t(0), uint32_t(value >> 32)});
      return stores.push_back({uint32_t(&to - memory.data()), to});
    }
    case Op::BarSync:
      ++barriers;
      return;
    default:
      FAIL() << inst.mnemonic();
    }
  }

  void setp(const Inst &inst, int64_t a, int64_t b) {
    static const std::map<std::string, bool (*)(int64_t, int64_t)> table = {
        {"eq", [](int64_t x, int64_t y) { return x == y; }}, {"ne", [](int64_t x, int64_t y) { return x != y; }},
        {"lt", [](int64_t x, int64_t y) { return x < y; }},  {"le", [](int64_t x, int64_t y) { return x <= y; }},
        {"gt", [](int64_t x, int64_t y) { return x > y; }},  {"ge", [](int64_t x, int64_t y) { return x >= y; }},
        {"hs", [](int64_t x, int64_t y) { return x >= y; }}};
    regs[inst.ops[0].reg] = table.at(inst.mod(0).str())(a, b);
  }

  const Function &function;
  std::vector<uint64_t> regs;
  std::vector<uint32_t> memory;
  std::map<std::string, uint32_t> labels;
};

struct NamedPass {
  const char *name;
  void (*run)(Function &);
};
constexpr NamedPass passes[] = {{"cleanUp", cleanUp},
                                {"foldConstants", [](Function &f) { foldConstants(f); }},
                                {"foldAddresses", [](Function &f) { foldAddresses(f); }},
                                {"shareCommonExpressions", [](Function &f) { shareCommonExpressions(f); }},
                                {"hoistLoopInvariants", [](Function &f) { hoistLoopInvariants(f); }},
                                {"removeDeadCode", [](Function &f) { removeDeadCode(f); }}};
} // namespace

TEST(CleanUpRandom, ProgramsStoreTheSame) {
  constexpr unsigned programs = gemmc::test::cases(4000);
  size_t before = 0, after = 0, stores = 0;
  unsigned changed[std::size(passes)] = {};
  for (unsigned seed = 0; seed < programs; ++seed) {
    std::string text = Generator(seed).program();
    Diags diags;
    auto module = parse(diags.addSource("random.ptx", text), diags);
    ASSERT_TRUE(module) << (diags.print(llvm::errs()), text);
    Interpreter original(module->functions[0]);
    ASSERT_TRUE(original.run()) << text;
    stores += original.stores.size();
    for (const NamedPass &pass : passes) {
      Module cleaned = *module;
      pass.run(cleaned.functions[0]);
      Interpreter rewritten(cleaned.functions[0]);
      ASSERT_TRUE(rewritten.run()) << pass.name << " seed " << seed << "\n" << text << print(cleaned);
      ASSERT_TRUE(original.stores == rewritten.stores && original.volatileLoads == rewritten.volatileLoads &&
                  original.barriers == rewritten.barriers)
          << pass.name << " seed " << seed << "\n"
          << text << "\n"
          << print(cleaned);
      changed[&pass - passes] +=
          cleaned.functions[0].body.size() != module->functions[0].body.size() || print(cleaned) != print(*module);
      if (pass.run == cleanUp) {
        before += module->functions[0].body.size();
        after += cleaned.functions[0].body.size();
        std::string printed = print(cleaned);
        Diags again;
        auto back = parse(again.addSource("cleaned.ptx", printed), again);
        ASSERT_TRUE(back) << printed;
        EXPECT_EQ(print(*back), printed);
        EXPECT_TRUE(verify(*back, again)) << printed;
      }
    }
  }
  EXPECT_GT(stores, programs * 3u) << "the programs do something";
  EXPECT_LT(after, before * 9 / 10) << "and clean-up finds something to do";
  for (unsigned i = 0; i < std::size(passes); ++i)
    EXPECT_GT(changed[i], programs / 20) << passes[i].name;
}
