// Tensor maps: transaction bytes, bounds, fill, alignment, swizzles, element strides (5.14: 1, 2, 3, 4, 5, 6, 8, 9,
// 22).
#include "Protocol.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace gemmc::microtests {
namespace {

constexpr unsigned imageBytes = 16384, pattern = 0xabababab;

struct Load {
  std::vector<int> coords;
  unsigned expect = 0, to = 0; ///< Bytes to expect; offset of the box in the image.
};

/// out[0]: the bytes were complete; out[1]: tries; the image from byte 512 on.
std::string loadText(const Load &load) {
  std::string text = begin(true, imageBytes) + prepare(imageBytes, pattern);
  text +=
      formatv("@!%p7 bra ISSUED;\nmbarrier.arrive.expect_tx.shared.b64 %x0, [%bar], {0};\nadd.u32 %u1, %img, {1};\n",
              load.expect, load.to);
  std::string coords;
  for (size_t i = 0; i < load.coords.size(); ++i) {
    text += formatv("mov.u32 %u{0}, {1};\n", 4 + i, load.coords[i]);
    coords += formatv("{0}%u{1}", i ? ", " : "", 4 + i).str();
  }
  text += formatv("cp.async.bulk.tensor.{0}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%u1], [%map, ",
                  load.coords.size());
  text += "{" + coords + "}], [%bar];\nISSUED:\n" + boundedWait("A");
  text += "@!%p7 bra STORED;\nselp.u32 %u1, 1, 0, %p0;\nst.global.b32 [%out], %u1;\nst.global.b32 [%out+4], %u0;\n"
          "STORED:\nbar.sync 0;\n";
  return text + dump(imageBytes, 512) + "ret;\n}\n";
}

struct Loaded {
  Trouble error;
  bool complete = false;
  Words out{(imageBytes + 512) / 4};
  ConstBytes image() { return ConstBytes(out.bytes()).drop_front(512); }
};
/// The tensor's bytes are `in`, `inBytes` of them.
Loaded tryLoad(Card &card, const MapRequest &map, const Load &load, Words &in) {
  Loaded loaded;
  loaded.error = card.run(loadText(load), {1, 128, 1, 0}, in.bytes(), loaded.out.bytes(), &map);
  loaded.complete = loaded.out[0] == 1;
  return loaded;
}
Trouble onEmulator(const MapRequest &map, const Load &load, Words &in, Words &out) {
  return emulate(loadText(load), {1, 128, 1, 0}, in.bytes(), out.bytes(), 1, &map);
}

MapRequest plainMap(Elem type, int driverType, uint64_t columns, uint64_t rows, uint64_t pitch, uint32_t boxColumns,
                    uint32_t boxRows) {
  MapRequest map;
  map.type = type, map.driverType = driverType;
  map.dims = {columns, rows}, map.strides = {pitch}, map.box = {boxColumns, boxRows};
  return map;
}
Words numbered(size_t words) {
  Words in(words);
  for (size_t i = 0; i < words; ++i) // 16-bit elements 1, 2, 3...
    in[i] = static_cast<uint32_t>((2 * i + 1) & 0xffff) | static_cast<uint32_t>((2 * i + 2) & 0xffff) << 16;
  return in;
}
/// `0,1,2,..` runs of what the image holds, for people.
std::string words(ConstBytes image, size_t from, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += std::string(i ? " " : "") + hex(loadBits(image, from + i * 4, 4), 32);
  return text;
}

Question::Answer outOfBounds(Card &card) {
  Words in = numbered(4096);
  MapRequest map = plainMap(Elem::f16, cuda::mapF16, 40, 5, 80, 64, 8);
  const std::pair<const char *, std::vector<int>> places[] = {{"right and bottom edge", {16, 2}},
                                                              {"negative", {-8, -3}},
                                                              {"wholly outside", {64, 8}},
                                                              {"far outside", {-4096, 100}}};
  std::string text;
  bool all = true;
  for (auto &[name, coords] : places) {
    Loaded full = tryLoad(card, map, {coords, 1024, 0}, in);
    if (!full.error.empty())
      return unsettled(std::string(name) + ": " + full.error);
    Words emulated((imageBytes + 512) / 4);
    Trouble trouble = onEmulator(map, {coords, 1024, 0}, in, emulated);
    bool same =
        trouble.empty() && ConstBytes(full.out.bytes()).drop_front(512) == ConstBytes(emulated.bytes()).drop_front(512);
    text += formatv("{0}: {1} after the box's 1024 bytes, data {2} the emulator's{3}; ", name,
                    full.complete ? "complete" : "NOT complete", same ? "equal" : "NOT", trouble);
    all &= full.complete && same;
  }
  return verdict(all, text);
}

Question::Answer storeClipping(Card &card, std::vector<int> coords) {
  // The tensor is 40 x 5 f16 at a pitch of 128 bytes in `in`; everything else must keep its bytes.
  MapRequest map = plainMap(Elem::f16, cuda::mapF16, 40, 5, 128, 64, 8);
  std::string text = begin(true, 1024) + prepare(1024, 0x77777777);
  text += formatv("@!%p7 bra ISSUED;\nmov.u32 %u4, {0};\nmov.u32 %u5, {1};\n"
                  "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, ",
                  coords[0], coords[1]);
  text += std::string("{%u4, %u5}], [%img];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
                      "fence.proxy.async;\nISSUED:\nbar.sync 0;\nmad.wide.u32 %x1, %t, 16, %in;\nmad.wide.u32 %x2, %t, "
                      "16, %out;\nld.global.v4.b32 {%u1, %u2, %u3, %u4}, [%x1];\nst.global.v4.b32 [%x2], {%u1, %u2, "
                      "%u3, %u4};\nret;\n}\n");
  Words in(512, 0x11111111), out(512);
  Trouble error = card.run(text, {1, 128, 1, 0}, in.bytes(), out.bytes(), &map);
  bool isNegative = coords[0] < 0 || coords[1] < 0;
  if (!error.empty())
    return isNegative && StringRef(error).contains("(715)") ? verdict(true, error) : unsettled(error);
  unsigned wrong = 0, written = 0;
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 64; ++column) {
      bool inside = row < 5 && column < 40 && row >= coords[1] && column >= coords[0] && row < coords[1] + 8 &&
                    column < coords[0] + 64;
      uint16_t value = loadBits(out.bytes(), row * 128 + column * 2, 2);
      written += value == 0x7777;
      wrong += value != (inside ? 0x7777 : 0x1111);
    }
  return verdict(!wrong && !isNegative,
                 formatv("{0} elements written, {1} not as clipping to the tensor says", written, wrong).str());
}

/// Which columns of a row a store writes whose tensor ends at `width` elements, no multiple of 16 bytes.
Question::Answer storeNarrow(Card &card, Elem type, int driverType, unsigned bytes, unsigned width) {
  MapRequest map = plainMap(type, driverType, width, 5, 128, 64 / bytes * 2, 8);
  std::string text = begin(true, 1024) + prepare(1024, 0x77777777);
  text += "@!%p7 bra ISSUED;\nmov.u32 %u4, 0;\nmov.u32 %u5, 0;\n"
          "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%u4, %u5}], [%img];\n"
          "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nfence.proxy.async;\nISSUED:\nbar.sync 0;\n"
          "mad.wide.u32 %x1, %t, 16, %in;\nmad.wide.u32 %x2, %t, 16, %out;\n"
          "ld.global.v4.b32 {%u1, %u2, %u3, %u4}, [%x1];\nst.global.v4.b32 [%x2], {%u1, %u2, %u3, %u4};\nret;\n}\n";
  Words in(512, 0x11111111), out(512);
  Trouble error = card.run(text, {1, 128, 1, 0}, in.bytes(), out.bytes(), &map);
  if (!error.empty())
    return unsettled(error);
  std::string written;
  bool whole = true;
  for (int row = 0; row < 16; ++row) {
    unsigned count = 0;
    for (unsigned at = 0; at < 128; ++at)
      count += loadBits(out.bytes(), row * 128 + at, 1) == 0x77;
    written += formatv(" {0}", count);
    whole &= count == (row < 5 ? (width * bytes + 15) / 16 * 16 : 0);
  }
  return verdict(whole, formatv("rows of {0} bytes; bytes written of each row:{1}", width * bytes, written).str());
}

Question::Answer oobFill(Card &card) {
  struct Kind {
    const char *name;
    Elem type;
    int driverType;
    unsigned bytes;
  };
  const Kind kinds[] = {{"f16", Elem::f16, cuda::mapF16, 2},    {"bf16", Elem::bf16, cuda::mapBF16, 2},
                        {"f32", Elem::f32, cuda::mapF32, 4},    {"f64", Elem::f64, cuda::mapF64, 8},
                        {"tf32", Elem::tf32, cuda::mapTF32, 4}, {"f32.ftz", Elem::f32, 10, 4}};
  Words in = numbered(4096);
  std::string text;
  for (const Kind &kind : kinds) {
    MapRequest map = plainMap(kind.type, kind.driverType, 16, 4, 16 * kind.bytes, 16, 4);
    map.oobNaN = 1;
    Loaded loaded = tryLoad(card, map, {{16, 0}, 64 * kind.bytes, 0}, in);
    text += formatv("{0} {1}; ", kind.name, loaded.error.empty() ? words(loaded.image(), 0, 2) : loaded.error);
  }
  return unsettled(text + "(zero fill is all that gemmc asks for)");
}

Question::Answer alignment(Card &card, unsigned at) {
  Words in = numbered(4096);
  MapRequest map = plainMap(Elem::f16, cuda::mapF16, 32, 8, 64, 32, 8);
  Loaded loaded = tryLoad(card, map, {{0, 0}, 512, at}, in);
  bool legal = at % 128 == 0;
  if (!loaded.error.empty())
    return verdict(!legal, "refused: " + loaded.error);
  bool right = loaded.complete && std::memcmp(loaded.image().data() + at, in.bytes().data(), 512) == 0;
  return verdict(legal && right, right ? "works"
                                       : "no error, but the data lies elsewhere: at 0 " + words(loaded.image(), 0, 4) +
                                             ", there " + words(loaded.image(), at, 4));
}

/// The image that the H200 showed: rows lie a span apart, whatever their own length, and bits of the address exchange.
Words narrowImage(unsigned span, unsigned columns, unsigned rows, Words &in) {
  Words image(imageBytes / 4, pattern);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned at = 0; at < columns * 2; at += 16) {
      unsigned to = row * span + at;
      to ^= (to >> 3) & (span - 16);
      std::memcpy(image.bytes().data() + to, in.bytes().data() + row * columns * 2 + at, 16);
    }
  return image;
}

Question::Answer narrowSwizzle(Card &card, int swizzle, unsigned columns) {
  Words in = numbered(8192);
  MapRequest map = plainMap(Elem::f16, cuda::mapF16, columns, 64, columns * 2, columns, 64);
  map.swizzle = swizzle;
  Load load{{0, 0}, columns * 2 * 64, 0};
  Loaded loaded = tryLoad(card, map, load, in);
  if (!loaded.error.empty())
    return unsettled(loaded.error);
  Words emulated((imageBytes + 512) / 4);
  Trouble trouble = onEmulator(map, load, in, emulated);
  Words expected = narrowImage(16u << swizzle, columns, 64, in);
  bool same = loaded.image() == ConstBytes(expected.bytes());
  std::string rows;
  for (unsigned i = 0; i < 24; ++i)
    rows += formatv("{0} ", loadBits(loaded.image(), i * 16, 2));
  // The emulator must not call a layout right that it does not model.
  return verdict(same && loaded.complete && StringRef(trouble).contains("unmodelled"),
                 formatv("rows {0} a span apart; {1}; complete {2}; first element of each 16 bytes: {3}",
                         same ? "lie" : "do NOT lie", trouble, loaded.complete, rows));
}

Question::Answer elementStrides(Card &card, std::vector<uint32_t> steps) {
  Words in = numbered(8192);
  MapRequest map = plainMap(Elem::f16, cuda::mapF16, 64, 16, 128, 32, 8);
  map.elementStrides = steps;
  std::string text;
  unsigned rows = (8 + steps[1] - 1) / steps[1], columns = (32 + steps[0] - 1) / steps[0];
  const std::pair<const char *, unsigned> sizes[] = {
      {"the whole box", 512}, {"fewer rows", rows * 64}, {"fewer rows and columns", rows * columns * 2}};
  unsigned last = 0;
  for (auto [name, bytes] : sizes) {
    if (bytes == last)
      continue;
    last = bytes;
    Loaded loaded = tryLoad(card, map, {{0, 0}, bytes, 0}, in);
    if (!loaded.error.empty())
      return unsettled(text + name + ": " + loaded.error);
    text += formatv("{0} bytes ({1}): {2}, first of each 16 bytes:", bytes, name,
                    loaded.complete ? "complete" : "not complete");
    for (unsigned i = 0; i < 36; ++i)
      text += formatv(" {0}", loadBits(loaded.image(), i * 16, 2));
    text += formatv(", {0} {1}; ", loadBits(loaded.image(), 2, 2), loadBits(loaded.image(), 4, 2));
  }
  return unsettled(text);
}

Question::Answer tf32Load(Card &card) {
  Words in(1024);
  const uint32_t values[] = {0x3f801fff, 0x3f800fff, 0x3f801000, 0x3f803000,
                             0xbf801001, 0x00000001, 0x7f800001, 0x007fffff};
  for (unsigned i = 0; i < 8; ++i)
    in[i] = values[i];
  const uint32_t rounded[] = {0x3f802000, 0x3f800000, 0x3f800000, 0x3f804000,
                              0xbf802000, 0x00000000, 0x7fffe000, 0x00800000};
  std::string text;
  bool asSeen = true;
  for (auto [name, type] :
       {std::pair("TF32", 11), std::pair("TF32_FTZ", 12), std::pair("F32_FTZ", 10), std::pair("F32", 7)}) {
    MapRequest map = plainMap(Elem::tf32, type, 8, 4, 32, 8, 4);
    Loaded loaded = tryLoad(card, map, {{0, 0}, 128, 0}, in);
    text += std::string(name) + ": " + (loaded.error.empty() ? words(loaded.image(), 0, 8) : loaded.error) + "; ";
    const uint32_t *expected = type == 11 || type == 12 ? rounded : values;
    asSeen &= loaded.error.empty() && std::memcmp(loaded.image().data(), expected, 32) == 0;
  }
  return verdict(asSeen, "of " + words(in.bytes(), 0, 8) + ": " + text);
}

Question::Answer strideZero(Card &card) {
  Words in = numbered(8192);
  MapRequest map = plainMap(Elem::f16, cuda::mapF16, 64, 16, 0, 64, 8);
  Loaded loaded = tryLoad(card, map, {{0, 0}, 1024, 0}, in);
  if (!loaded.error.empty())
    return verdict(false, loaded.error);
  bool repeats = true;
  for (unsigned row = 0; row < 8; ++row)
    repeats &= std::memcmp(loaded.image().data() + row * 128, in.bytes().data(), 128) == 0;
  return verdict(loaded.complete && repeats,
                 repeats ? "accepted; every row is the first one" : "accepted, but rows differ");
}

/// Clusters of four: rank 0 sends a box to ranks 1 and 2. The second cluster's CTAs are 4 to 7.
Question::Answer multicast(Card &card) {
  std::string text = begin(true, 1024) + prepare(1024, pattern);
  text += "@!%p7 bra ARMED;\nmbarrier.arrive.expect_tx.shared.b64 %x0, [%bar], 512;\nARMED:\n"
          "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nmov.u32 %u6, %cluster_ctarank;\n"
          "setp.eq.u32 %p2, %u6, 0;\nand.pred %p2, %p2, %p7;\n@!%p2 bra ISSUED;\nmov.u32 %u4, 0;\nmov.b16 %h0, 6;\n"
          "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%img], "
          "[%map, {%u4, %u4}], [%bar], %h0;\nISSUED:\n" +
          boundedWait("A") +
          "@!%p7 bra STORED;\nselp.u32 %u1, 1, 0, %p0;\nld.shared.b32 %u2, [%img];\nmad.wide.u32 %x1, %cta, 8, %out;\n"
          "st.global.b32 [%x1], %u1;\nst.global.b32 [%x1+4], %u2;\nSTORED:\nbarrier.cluster.arrive.aligned;\n"
          "barrier.cluster.wait.aligned;\nret;\n}\n";
  Words in = numbered(4096), out(16);
  MapRequest map = plainMap(Elem::f16, cuda::mapF16, 32, 8, 64, 32, 8);
  Trouble error = card.run(text, {8, 128, 4, 0}, in.bytes(), out.bytes(), &map);
  if (!error.empty())
    return unsettled(error);
  bool byRank = true;
  std::string got;
  for (unsigned cta = 0; cta < 8; ++cta) {
    bool expected = cta % 4 == 1 || cta % 4 == 2;
    byRank &= out[2 * cta] == expected && (out[2 * cta + 1] == in[0]) == expected;
    if (out[2 * cta])
      got += formatv(" {0}", cta);
  }
  return verdict(byRank, "mask 6 reached the CTAs" + got + " of clusters 0-3 and 4-7");
}
} // namespace

void addTensorMapQuestions(std::vector<Question> &questions) {
  auto add = [&](std::string name, std::string asks, std::string rule, std::function<Question::Answer(Card &)> ask) {
    questions.push_back({"protocol/" + name, std::move(asks), std::move(rule), std::move(ask)});
  };
  add("1 oob bytes", "transaction bytes of boxes partly or wholly out of bounds", "TM-2: always the whole box",
      outOfBounds);
  add("2 store clip", "a store that reaches over the right and bottom edge", "TM-9: elements outside are not written",
      [](Card &card) { return storeClipping(card, {16, 2}); });
  for (unsigned width : {37u, 39u})
    add(formatv("2 store f16 x {0}", width), "a store to a tensor whose rows are no multiple of 16 bytes",
        "TM-15: whole 16 bytes are written, an error",
        [width](Card &card) { return storeNarrow(card, Elem::f16, cuda::mapF16, 2, width); });
  for (unsigned width : {9u, 10u, 11u})
    add(formatv("2 store f32 x {0}", width), "a store to a tensor whose rows are no multiple of 16 bytes",
        "TM-15: whole 16 bytes are written, an error",
        [width](Card &card) { return storeNarrow(card, Elem::f32, cuda::mapF32, 4, width); });
  add("2 store negative", "a store with negative start coordinates", "TM-9: an error",
      [](Card &card) { return storeClipping(card, {-8, -2}); });
  add("3 multicast mask", "which CTAs the bits of the multicast mask mean", "TM-4: bit = %cluster_ctarank", multicast);
  add("4 oob nan", "bit patterns of the NaN fill", "not used: maps fill with zeros", oobFill);
  for (unsigned at : {16, 32, 64, 128})
    add(formatv("5 alignment {0}", at),
        formatv("destination of a tensor load at a multiple of {0} bytes, no swizzle", at),
        at == 128 ? "TM-14: fine" : "TM-14: an error", [at](Card &card) { return alignment(card, at); });
  for (auto [swizzle, columns] : {std::pair(3, 16u), std::pair(3, 32u), std::pair(2, 16u), std::pair(3, 8u)})
    add(formatv("6 swizzle {0} x {1} bytes", swizzle == 3 ? 128 : 64, columns * 2),
        "a box narrower than the swizzle's span",
        "rows lie a span apart, bits of the absolute address exchange; unmodelled",
        [=](Card &card) { return narrowSwizzle(card, swizzle, columns); });
  for (auto steps : {std::vector<uint32_t>{1, 2}, std::vector<uint32_t>{2, 1}, std::vector<uint32_t>{1, 3}})
    add(formatv("8 element strides {0} {1}", steps[0], steps[1]), "transaction bytes and layout with element strides",
        "unmodelled: gemmc has only strides of 1", [steps](Card &card) { return elementStrides(card, steps); });
  add("9 tf32 map", "whether a load with a TF32 map rounds",
      "TF32 rounds to nearest even, F32 copies the bits; unmodelled", tf32Load);
  add("22 stride 0", "whether the driver accepts a global stride of 0", "the emulator accepts it", strideZero);
}

} // namespace gemmc::microtests
