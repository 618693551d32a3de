// Atomics and bulk reductions: old values and results, in global and in shared memory. Each thread has a place of its
// own, so that there is one right answer.
#include "Family.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

using ptx::Type;

struct Row {
  const char *type;
  const char *atom, *red, *bulk; ///< Operations, separated by blanks.
};
const Row rows[] = {
    {"u32", "add min max inc dec", "add min max inc dec", "add min max inc dec"},
    {"s32", "add min max", "add min max", "add min max"},
    {"u64", "add min max", "add min max", "add min max"},
    {"s64", "min max", "min max", "min max"},
    {"b32", "and or xor exch cas", "and or xor", "and or xor"},
    {"b64", "and or xor exch cas", "and or xor", "and or xor"},
    {"b16", "cas", "", ""},
    {"f32", "add", "add", "add"},
    {"f64", "add", "add", "add"},
    {"f16", "add.noftz", "add.noftz", "add.noftz min max"},
    {"bf16", "add.noftz", "add.noftz", "add.noftz min max"},
    {"f16x2", "add.noftz", "add.noftz", ""},
    {"bf16x2", "add.noftz", "add.noftz", ""},
};

/// What the values of a place are drawn as.
Type drawnType(StringRef name) {
  if (name == "b16")
    return Type::u16;
  return name == "b32" ? Type::u32 : name == "b64" ? Type::u64 : *ptx::parseType(name);
}

constexpr unsigned threads = 256, sources = 3;

void fillThread(Random &random, Bytes in, unsigned thread, Type type, unsigned bytes) {
  uint64_t first = drawScalar(random, type);
  for (unsigned i = 0; i < sources; ++i) {
    uint64_t value = !i ? first : random.chance(3) ? drawNear(random, type, first) : drawScalar(random, type);
    storeBits(in, (size_t(i) * threads + thread) * bytes, value, bytes);
  }
}

/// An instruction as it is printed for people: `atom.global.add.u32`.
std::string atomText(StringRef what, StringRef space, StringRef op, StringRef type) {
  return (what + "." + space + "." + op + "." + type).str();
}

/// Input: place, operand, second operand; output, instruction by instruction: old values (red: operands), new ones.
Family atomicFamily(const Row &row, StringRef what, StringRef ops, StringRef space) {
  Type type = drawnType(row.type);
  unsigned bits = widthOf(type), bytes = bits / 8, inBytes = sources * threads * bytes;
  SmallVector<StringRef> names;
  ops.split(names, ' ');
  unsigned outBytes = names.size() * 2 * threads * bytes;
  std::string text = ptxHead;
  text += formatv(".visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.shared .align 16 .b8 places[{1}];\n"
                  ".reg .b64 %in, %out, %slot;\n.reg .b32 %t, %cta, %s;\n.reg .b{0} %a, %b, %c, %d, %n;\n"
                  "mov.u32 %t, %tid.x;\nmov.u32 %cta, %ctaid.x;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
                  "mad.wide.u32 %in, %cta, {2}, %in;\nmad.wide.u32 %out, %cta, {3}, %out;\n"
                  "mad.wide.u32 %in, %t, {4}, %in;\nmad.wide.u32 %out, %t, {4}, %out;\n"
                  "mov.u32 %s, places;\nmad.lo.u32 %s, %t, {4}, %s;\n",
                  bits, threads * bytes, inBytes, outBytes, bytes)
              .str();
  for (unsigned i = 0; i < sources; ++i)
    text += formatv("ld.global.b{0} %{1}, [%in+{2}];\n", bits, char('a' + i), i * threads * bytes).str();
  for (auto [i, op] : enumerate(names)) {
    std::string old = formatv("%out+{0}", (2 * i) * threads * bytes).str(),
                now = formatv("%out+{0}", (2 * i + 1) * threads * bytes).str(), place = space == "shared" ? "%s" : now,
                name = atomText(what, space, op, row.type);
    text += formatv("st.{0}.b{1} [{2}], %a;\n", space, bits, place).str();
    text += what == "red" ? formatv("{0} [{1}], %b;\nmov.b{2} %d, %b;\n", name, place, bits).str()
                          : formatv("{0} %d, [{1}], %b{2};\n", name, place, op == "cas" ? ", %c" : "").str();
    if (space == "shared")
      text += formatv("ld.shared.b{0} %n, [%s];\nst.global.b{0} [{1}], %n;\n", bits, now).str();
    text += formatv("st.global.b{0} [{1}], %d;\n", bits, old).str();
  }
  Family family;
  family.name = formatv("atomic/{0}.{1}.{2}", what, space, row.type).str();
  family.ptx = text + "ret;\n}\n";
  family.threads = threads;
  family.inBytes = inBytes, family.outBytes = outBytes;
  family.wordBytes = bytes;
  family.vectors = threads;
  family.fill = [=](Random &random, Bytes in) {
    for (unsigned t = 0; t < threads; ++t)
      fillThread(random, in, t, type, bytes);
  };
  std::vector<std::string> instructions;
  for (StringRef op : names)
    instructions.push_back(atomText(what, space, op, row.type));
  family.describe = [=](ConstBytes in, unsigned word, uint64_t, uint64_t) {
    unsigned t = word % threads, which = word / threads;
    std::string told = instructions[which / 2] + (which % 2 ? " new value:" : " old value:");
    for (unsigned i = 0; i < sources; ++i)
      told +=
          formatv(" {0}={1}", char('a' + i), hex(loadBits(in, (size_t(i) * threads + t) * bytes, bytes), bits)).str();
    return told;
  };
  return family;
}

constexpr unsigned bulkBytes = 4096, bulkLanes = 128;
const char *const meet = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// Into the places of the other CTA of a pair: its own are not allowed (TM-16). Each CTA has the other's operands.
std::string reduceInPair(StringRef mnemonic) {
  std::string text = formatv("{0}@!%first bra WAIT;\nmov.u32 %s, %cluster_ctarank;\nxor.b32 %s, %s, 1;\n"
                             "mapa.shared::cluster.u32 %p, %p, %s;\nmapa.shared::cluster.u32 %s, %d, %s;\n"
                             "{1} [%p], [%o], {2}, [%s];\nWAIT:\nmov.u32 %s, 0;\nSPIN:\n"
                             "mbarrier.test_wait.parity.shared.b64 %q, [%d], 0;\n@%q bra READY;\n"
                             "add.u32 %s, %s, 1;\nsetp.lt.u32 %q, %s, 200000;\n@%q bra SPIN;\nREADY:\n",
                             meet, mnemonic, bulkBytes)
                         .str();
  for (unsigned at = 0; at < bulkBytes; at += bulkLanes * 16)
    text += formatv("ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}, [%cta+{0}];\nst.global.v4.b32 [%x+{0}], {{%v0, %v1, "
                    "%v2, %v3};\n",
                    at)
                .str();
  return text + meet;
}

/// cp.reduce.async.bulk from shared into global memory, or into the shared memory of another CTA. Input: places,
/// operands.
Family bulkFamily(StringRef typeName, StringRef op, bool toShared) {
  Type type = drawnType(typeName);
  unsigned bits = widthOf(type), bytes = bits / 8;
  std::string text = ptxHead;
  text += formatv(".visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.shared .align 128 .b8 operands[{0}];\n"
                  ".shared .align 128 .b8 places[{0}];\n.shared .align 8 .b64 done;\n.reg .b64 %in, %out, %x, %in2;\n"
                  ".reg .b32 %t, %cta, %s, %p, %o, %d;\n.reg .b32 %v<4>;\n.reg .pred %first, %q;\n"
                  "mov.u32 %t, %tid.x;\nmov.u32 %cta, %ctaid.x;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
                  "xor.b32 %s, %cta, {2};\nmad.wide.u32 %in2, %s, {1}, %in;\n"
                  "mad.wide.u32 %in, %cta, {1}, %in;\nmad.wide.u32 %out, %cta, {0}, %out;\n"
                  "mov.u32 %o, operands;\nmov.u32 %p, places;\nmov.u32 %d, done;\nsetp.eq.u32 %first, %t, 0;\n"
                  "@%first mbarrier.init.shared.b64 [%d], 1;\n@%first fence.mbarrier_init.release.cluster;\n"
                  "mad.wide.u32 %in, %t, 16, %in;\nmad.wide.u32 %in2, %t, 16, %in2;\nmad.wide.u32 %x, %t, 16, %out;\n"
                  "mad.lo.u32 %s, %t, 16, %o;\nmad.lo.u32 %cta, %t, 16, %p;\n",
                  bulkBytes, 2 * bulkBytes, int(toShared))
              .str();
  for (unsigned at = 0; at < bulkBytes; at += bulkLanes * 16)
    text +=
        formatv(
            "ld.global.v4.b32 {{%v0, %v1, %v2, %v3}, [%in+{0}];\n{1}.v4.b32 [{2}+{0}], {{%v0, %v1, %v2, %v3};\n"
            "ld.global.v4.b32 {{%v0, %v1, %v2, %v3}, [%in2+{3}];\nst.shared.v4.b32 [%s+{0}], {{%v0, %v1, %v2, %v3};\n",
            at, toShared ? "st.shared" : "st.global", toShared ? "%cta" : "%x", at + bulkBytes)
            .str();
  std::string mnemonic =
      toShared ? formatv("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{0}.{1}", op,
                         typeName)
                     .str()
               : formatv("cp.reduce.async.bulk.global.shared::cta.bulk_group.{0}.{1}", op, typeName).str();
  text += "fence.proxy.async;\n";
  if (toShared)
    text += formatv("@%first mbarrier.arrive.expect_tx.shared.b64 _, [%d], {0};\n", bulkBytes).str() +
            reduceInPair(mnemonic);
  else
    text += formatv("bar.sync 0;\n@!%first bra END;\n{0} [%out], [%o], {1};\ncp.async.bulk.commit_group;\n"
                    "cp.async.bulk.wait_group 0;\nEND:\n",
                    mnemonic, bulkBytes)
                .str();
  Family family;
  family.name = formatv("reduce/bulk.{0}.{1}.{2}", toShared ? "shared" : "global", op, typeName).str();
  family.ptx = text + "ret;\n}\n";
  family.threads = bulkLanes;
  family.cluster = toShared ? 2 : 1;
  family.inBytes = 2 * bulkBytes, family.outBytes = bulkBytes;
  family.wordBytes = bytes;
  family.vectors = bulkBytes / bytes;
  family.fill = [=](Random &random, Bytes in) {
    for (unsigned i = 0; i < bulkBytes / bytes; ++i) {
      uint64_t place = drawScalar(random, type);
      storeBits(in, size_t(i) * bytes, place, bytes);
      storeBits(in, bulkBytes + size_t(i) * bytes,
                random.chance(4) ? drawNear(random, type, place) : drawScalar(random, type), bytes);
    }
  };
  family.describe = [=](ConstBytes in, unsigned word, uint64_t, uint64_t) {
    return formatv("{0} place={1} operand={2}", mnemonic, hex(loadBits(in, size_t(word) * bytes, bytes), bits),
                   hex(loadBits(in, bulkBytes + size_t(word) * bytes, bytes), bits))
        .str();
  };
  return family;
}

/// Into shared memory there are fewer operations (9.7.9.25.4.2).
bool reducesShared(StringRef type, StringRef op) {
  return type == "u32" || type == "s32" || type == "b32" || (type == "u64" && op == "add");
}
} // namespace

void addAtomicFamilies(std::vector<Family> &families) {
  for (const Row &row : rows) {
    for (const char *space : {"global", "shared"}) {
      families.push_back(atomicFamily(row, "atom", row.atom, space));
      if (*row.red)
        families.push_back(atomicFamily(row, "red", row.red, space));
    }
    SmallVector<StringRef> ops;
    StringRef(row.bulk).split(ops, ' ', -1, false);
    for (StringRef op : ops) {
      families.push_back(bulkFamily(row.type, op, false));
      if (reducesShared(row.type, op))
        families.push_back(bulkFamily(row.type, op, true));
    }
  }
}

} // namespace gemmc::microtests
