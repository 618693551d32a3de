// The side file of foreign PTX. Strict, like the launch block: what is misspelt, missing or out of range is a located
// error, because a launch with it would read or write where it must not.
#include "ForeignForms.h"
#include "gemmc/Run/Foreign.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstring>

using namespace llvm;

namespace gemmc::run {
namespace {
using ptx::Type;
constexpr Type elementTypes[] = {Type::u8,  Type::u16, Type::u32, Type::u64,  Type::s8,  Type::s16,
                                 Type::s32, Type::s64, Type::f16, Type::bf16, Type::f32, Type::f64};

std::optional<Type> elementType(StringRef name) {
  auto found = find_if(elementTypes, [&](Type type) { return ptx::nameOf(type) == name; });
  return found == std::end(elementTypes) ? std::nullopt : std::optional(*found);
}
std::vector<StringRef> typeNames() {
  std::vector<StringRef> names;
  for (Type type : elementTypes)
    names.push_back(ptx::nameOf(type));
  return names;
}
std::optional<Elem> parsedElem(Type type) { return parseElem(ptx::nameOf(type)); }

class Reader : ForeignForms {
public:
  Reader(const ptx::Module &module, Diags &diags) : ForeignForms(diags), module(module) {}
  bool read(const YamlNode &root);
  ForeignLaunch launch;

private:
  uint64_t taken = 0; ///< Bytes of global memory.

  void expectValues(const Expr &formula, const YamlNode &node, StringRef key, uint64_t first, uint64_t count,
                    uint64_t size);
  uint32_t buffer(const YamlNode &map, StringRef key);
  void triple(const YamlNode &root, StringRef key, std::array<uint32_t, 3> &into, std::array<int64_t, 3> most);

  void kernel(const YamlNode &root);
  void geometry(const YamlNode &root);
  bool takeRoom(uint64_t bytes, SMRange range);
  void bufferOf(const YamlEntry &entry);
  void fill(const YamlNode &node, ForeignBuffer &into);
  ForeignArg arg(const YamlNode &node, unsigned depth);
  void scalar(const YamlNode &node, Type type, ForeignArg &into);
  void tensorMap(const YamlNode &node, ForeignArg &into);
  void structure(const YamlNode &node, ForeignArg &into, unsigned depth);
  void matchParams(const YamlNode &root);
  void expectation(const YamlNode &node);
  void gemm(const YamlNode &node, ForeignExpect &into);
  ForeignExpect::Matrix matrix(const YamlNode &node, StringRef key, int64_t rows, int64_t cols);
  void range(const YamlNode &node, uint32_t buffer, uint64_t &from, uint64_t &count, uint64_t otherwise);
  void print(const YamlNode &node);

  const ptx::Module &module;
  const ptx::Function *entry = nullptr;
};

// --- Forms that only it has

uint32_t Reader::buffer(const YamlNode &map, StringRef key) {
  const YamlNode *node = map.find(key);
  if (!node)
    return 0;
  std::vector<StringRef> names;
  for (const ForeignBuffer &one : launch.buffers)
    names.push_back(one.name);
  auto found = node->kind == YamlNode::Scalar ? find(names, node->text) : names.end();
  if (found != names.end())
    return found - names.begin();
  if (names.empty())
    diags.report(Diag::launch_missing_key, node->range, "buffers");
  else
    diags.report(Diag::launch_word, node->range, key, node->text, listed(names));
  return 0;
}

/// `64`, `[64]`, `[64, 2]`, `[64, 2, 1]`.
void Reader::triple(const YamlNode &root, StringRef key, std::array<uint32_t, 3> &into, std::array<int64_t, 3> most) {
  const YamlNode *node = root.find(key);
  if (!node)
    return;
  if (node->kind == YamlNode::Scalar) {
    into[0] = integer(*node, key, 1, most[0]).value_or(1);
    return;
  }
  const auto &list = items(node, key);
  if (node->kind == YamlNode::List && (list.empty() || list.size() > 3))
    diags.report(Diag::launch_length, node->range, key, list.size(), "1 to 3");
  for (unsigned i = 0; i < std::min<size_t>(3, list.size()); ++i)
    into[i] = integer(list[i], key, 1, most[i]).value_or(1);
}

// --- Kernel and geometry

void Reader::kernel(const YamlNode &root) {
  std::vector<StringRef> names;
  for (const ptx::Function &one : module.functions)
    if (one.isEntry)
      names.push_back(one.name);
  const YamlNode *node = root.find("kernel");
  if (names.empty()) {
    diags.report(Diag::launch_kind, root.range, "kernel", "an entry of the PTX, which has none");
  } else if (!node && names.size() > 1) {
    diags.report(Diag::launch_missing_key, root.range, "kernel");
    diags.report(Diag::launch_word, root.range, "kernel", "", listed(names));
  } else {
    // C++ names are mangled: `scale` finds `_Z5scalePf`.
    std::string text = node ? node->text : names.front().str();
    auto mangled = std::to_string(text.size()) + text;
    auto found = find(names, text);
    if (found == names.end())
      found = find_if(names, [&](StringRef name) { return name.starts_with("_Z") && name.contains(mangled); });
    if (found == names.end())
      diags.report(Diag::launch_word, node->range, "kernel", text, listed(names));
    else
      entry = module.find(*found);
  }
  if (entry)
    launch.kernel = entry->name;
}

void Reader::geometry(const YamlNode &root) {
  triple(root, "grid", launch.grid, {INT32_MAX, 65535, 65535});
  triple(root, "block", launch.block, {1024, 1024, 64});
  triple(root, "cluster", launch.cluster, {16, 16, 16});
  launch.shared = integer(root, "shared", 0, 227 * 1024, 0);
  auto product = [](const std::array<uint32_t, 3> &v) { return uint64_t(v[0]) * v[1] * v[2]; };
  auto shown = [](const std::array<uint32_t, 3> &v) { return formatv("{0} x {1} x {2}", v[0], v[1], v[2]).str(); };
  if (product(launch.block) > 1024)
    diags.report(Diag::launch_product, root.find("block")->range, "block", shown(launch.block), product(launch.block),
                 "threads", 1024);
  if (entry && entry->reqnctapercluster[0] && !root.find("cluster"))
    for (unsigned i = 0; i < 3; ++i)
      launch.cluster[i] = std::max(1u, entry->reqnctapercluster[i]);
  if (product(launch.cluster) > 16)
    diags.report(Diag::launch_product, root.find("cluster")->range, "cluster", shown(launch.cluster),
                 product(launch.cluster), "CTAs", 16);
  for (unsigned i = 0; i < 3; ++i)
    if (launch.grid[i] % launch.cluster[i]) {
      const YamlNode *node = root.find("grid") ? root.find("grid") : &root;
      return (void)diags.report(Diag::launch_kind, node->range, "grid",
                                "a multiple of the cluster, which is " + shown(launch.cluster));
    }
}

/// Reports the first of `count` elements for which a formula has no value.
void Reader::expectValues(const Expr &formula, const YamlNode &node, StringRef key, uint64_t first, uint64_t count,
                          uint64_t size) {
  for (uint64_t i = first; i < first + count; ++i)
    if (!elementOf(formula, i, size))
      return (void)diags.report(Diag::launch_element, node.range, key, i);
}

// --- Buffers

/// Variables of the module come first.
bool Reader::takeRoom(uint64_t bytes, SMRange range) {
  bool fitted = taken <= maxForeignBytes;
  taken += bytes;
  if (taken > maxForeignBytes && fitted)
    diags.report(Diag::foreign_too_large, range, taken, maxForeignBytes);
  return taken <= maxForeignBytes;
}

void Reader::fill(const YamlNode &node, ForeignBuffer &into) {
  static constexpr std::pair<StringLiteral, ForeignBuffer::Fill> words[] = {{"zero", ForeignBuffer::zero},
                                                                            {"random", ForeignBuffer::random},
                                                                            {"integer", ForeignBuffer::integer},
                                                                            {"nan", ForeignBuffer::nan}};
  for (const auto &[name, kind] : words)
    if (node.kind == YamlNode::Scalar && node.text == name) {
      into.fill = kind;
      return;
    }
  if (node.kind == YamlNode::List) {
    into.fill = ForeignBuffer::listed;
    into.values = numbers(node, "fill");
    return;
  }
  into.fill = ForeignBuffer::formula;
  if (auto made = formula(node, "fill")) {
    into.value = *made;
    expectValues(*made, node, "fill", 0, into.count, into.count);
  }
}

void Reader::bufferOf(const YamlEntry &source) {
  ForeignBuffer made;
  made.name = source.key.text;
  made.range = source.value.range;
  if (source.value.kind == YamlNode::Map && source.value.find("alias")) {
    isMap(source.value, source.key.text, {"alias"}, {"alias"});
    uint32_t of = buffer(source.value, "alias");
    if (of < launch.buffers.size()) {
      made.type = launch.buffers[of].type, made.count = launch.buffers[of].count;
      made.aliasOf = launch.buffers[of].aliasOf.value_or(of);
      takeRoom(made.bytes(), source.value.range);
    }
    launch.buffers.push_back(std::move(made));
    return;
  }
  if (!isMap(source.value, source.key.text, {"type", "size", "fill", "seed"}, {"type", "size"})) {
    launch.buffers.push_back(std::move(made)); // others may name it
    return;
  }
  const YamlNode &type = *source.value.find("type"), &size = *source.value.find("size");
  if (auto found = elementType(type.text))
    made.type = *found;
  else
    diags.report(Diag::launch_word, type.range, "type", type.text, listed(typeNames()));
  made.count = 1;
  ArrayRef<YamlNode> extents = size.kind == YamlNode::List ? ArrayRef(size.items) : ArrayRef(size);
  for (const YamlNode &extent : extents) {
    uint64_t count = integer(extent, "size", 1, maxForeignBytes).value_or(1);
    if (made.count > maxForeignBytes / count) {
      diags.report(Diag::launch_range, size.range, "size", "too much", 1, maxForeignBytes);
      made.count = 1;
      break;
    }
    made.count *= count;
  }
  if (!takeRoom(made.bytes(), size.range))
    made.count = 1; // nothing walks over it
  made.seed = integer(source.value, "seed", 0, INT64_MAX, 1 + launch.buffers.size());
  if (const YamlNode *node = source.value.find("fill"))
    fill(*node, made);
  launch.buffers.push_back(std::move(made));
}

// --- Arguments

void append(std::vector<std::byte> &to, const void *from, size_t bytes) {
  auto *begin = static_cast<const std::byte *>(from);
  to.insert(to.end(), begin, begin + bytes);
}

void Reader::scalar(const YamlNode &node, Type type, ForeignArg &into) {
  unsigned bits = ptx::bitsOf(type);
  into.align = bits / 8;
  if (type >= Type::f16) {
    uint64_t pattern = encode(*parsedElem(type), number(node, ptx::nameOf(type)).value_or(0));
    return append(into.bytes, &pattern, bits / 8);
  }
  bool isSigned = type >= Type::s8;
  int64_t low = isSigned ? INT64_MIN >> (64 - bits) : 0;
  int64_t high = isSigned ? INT64_MAX >> (64 - bits) : bits == 64 ? INT64_MAX : (int64_t(1) << bits) - 1;
  int64_t value = integer(node, ptx::nameOf(type), low, high).value_or(0);
  append(into.bytes, &value, bits / 8);
}

void Reader::tensorMap(const YamlNode &node, ForeignArg &into) {
  ForeignArg::Map made;
  made.range = node.range;
  into.align = 64;
  into.bytes.resize(128);
  if (!isMap(node, "map", {"buffer", "offset", "type", "dims", "strides", "box", "swizzle"}, {"buffer", "dims", "box"}))
    return;
  made.buffer = buffer(node, "buffer");
  made.offset = integer(node, "offset", 0, maxForeignBytes, 0);
  std::optional<Elem> type = launch.buffers.empty() ? Elem::f32 : parsedElem(launch.buffers[made.buffer].type);
  if (const YamlNode *given = node.find("type"))
    type = given->text == "u16" ? Elem::f16 : parseElem(given->text); // 16 bits, whatever they mean
  if (!type)
    diags.report(Diag::launch_kind, node.range, "type", "the name of an element type of tensor maps, such as f16");
  made.values.type = type.value_or(Elem::f32);
  for (const YamlNode &item : items(node.find("dims"), "dims"))
    made.values.dims.push_back(integer(item, "dims", 1, INT64_C(1) << 32).value_or(1));
  for (const YamlNode &item : items(node.find("box"), "box"))
    made.values.box.push_back(integer(item, "box", 1, 256).value_or(1));
  if (const YamlNode *strides = node.find("strides"))
    for (const YamlNode &item : items(strides, "strides"))
      made.values.strides.push_back(integer(item, "strides", 0, INT64_C(1) << 40).value_or(0));
  else // packed
    for (size_t i = 0; i + 1 < made.values.dims.size(); ++i)
      made.values.strides.push_back(made.values.dims[i] * (i ? made.values.strides.back() : bytesOf(made.values.type)));
  using ptx::TmaSwizzle;
  word<TmaSwizzle>(
      node, "swizzle",
      {{"none", TmaSwizzle::none}, {"32B", TmaSwizzle::b32}, {"64B", TmaSwizzle::b64}, {"128B", TmaSwizzle::b128}},
      made.values.swizzle);
  emu::TensorMapValues somewhere = made.values;
  somewhere.address = (uint64_t(1) << 40) + made.offset;
  if (std::string error = emu::encodeTensorMap(somewhere).error; !error.empty() && !diags.hasErrors())
    diags.report(Diag::run_tensor_map, node.range, launch.buffers[made.buffer].name, error);
  into.maps.push_back(std::move(made));
}

/// Members in order, each naturally aligned or where `at` says; the whole is padded as in C.
void Reader::structure(const YamlNode &node, ForeignArg &into, unsigned depth) {
  for (const YamlNode &item : items(&node, "struct")) {
    ForeignArg member = arg(item, depth + 1);
    uint64_t at = (into.bytes.size() + member.align - 1) / member.align * member.align;
    if (item.kind == YamlNode::Map)
      at = integer(item, "at", into.bytes.size(), 4096, at);
    into.align = std::max(into.align, member.align);
    into.bytes.resize(at);
    into.bytes.insert(into.bytes.end(), member.bytes.begin(), member.bytes.end());
    for (ForeignArg::Pointer pointer : member.pointers) {
      pointer.at += at;
      into.pointers.push_back(pointer);
    }
    for (ForeignArg::Map map : member.maps) {
      map.at += at;
      into.maps.push_back(std::move(map));
    }
    for (ForeignArg::InMemory &one : member.inMemory) {
      one.at += at;
      into.inMemory.push_back(std::move(one));
    }
  }
  into.bytes.resize((into.bytes.size() + into.align - 1) / into.align * into.align);
}

ForeignArg Reader::arg(const YamlNode &node, unsigned depth) {
  ForeignArg made;
  made.range = node.range;
  const YamlEntry *found = nullptr;
  unsigned kinds = 0;
  for (const YamlEntry &one : node.entries) // none when it is no map
    if (elementType(one.key.text) || is_contained({"buffer", "map", "struct", "memory"}, StringRef(one.key.text))) {
      found = &one;
      ++kinds;
    } else if (one.key.text != "offset" && (one.key.text != "at" || !depth)) {
      diags.report(Diag::launch_unknown_key, one.key.range, one.key.text,
                   "`buffer`, `offset`, `map`, `struct`, `memory`, " + listed(typeNames()));
    }
  if (kinds != 1) {
    diags.report(Diag::launch_kind, node.range, "an argument",
                 "a map with one of `buffer`, `map`, `struct`, `memory`, or a type and its value, such as {s32: 64}");
    return made;
  }
  if (auto type = elementType(found->key.text)) {
    scalar(found->value, *type, made);
  } else if (found->key.text == "map") {
    tensorMap(found->value, made);
  } else if (found->key.text == "struct") {
    structure(found->value, made, depth);
  } else if (found->key.text == "memory") {
    made.align = 8;
    made.bytes.resize(8);
    made.inMemory.push_back({0, arg(found->value, depth + 1)});
  } else {
    made.align = 8;
    made.bytes.resize(8);
    made.pointers.push_back(
        {0, buffer(node, "buffer"), integer(node, "offset", -(INT64_C(1) << 32), INT64_C(1) << 32, 0)});
  }
  return made;
}

/// Number and sizes of the arguments against what the entry declares.
void Reader::matchParams(const YamlNode &root) {
  if (!entry)
    return;
  const YamlNode *node = root.find("args") ? root.find("args") : &root;
  if (launch.args.size() != entry->params.size())
    return (void)diags.report(Diag::launch_param_count, node->range, entry->name, entry->params.size(),
                              launch.args.size());
  for (auto [i, arg] : enumerate(launch.args)) {
    const ptx::Variable &param = entry->params[i];
    if (param.bytes() != arg.bytes.size() && !diags.hasErrors())
      diags.report(Diag::launch_arg_bytes, arg.range, arg.bytes.size(), i, entry->name, param.name, param.bytes(),
                   param.bytes() == 8 ? ": an address is `buffer: NAME`, a null pointer `u64: 0`" : "");
  }
}

// --- Expectations

void Reader::range(const YamlNode &node, uint32_t buffer, uint64_t &from, uint64_t &count, uint64_t otherwise) {
  if (buffer >= launch.buffers.size())
    return;
  uint64_t size = launch.buffers[buffer].count;
  from = integer(node, "from", 0, size - 1, 0);
  count = integer(node, "count", 1, size - from, std::min(size - from, otherwise));
}

ForeignExpect::Matrix Reader::matrix(const YamlNode &node, StringRef key, int64_t rows, int64_t cols) {
  ForeignExpect::Matrix made;
  const YamlNode *map = node.find(key);
  if (!map || !isMap(*map, key, {"buffer", "layout", "ld"}, {"buffer"}))
    return made;
  made.buffer = buffer(*map, "buffer");
  word<Order>(*map, "layout", {{"row", Order::row}, {"col", Order::col}}, made.order);
  int64_t lines = made.order == Order::row ? rows : cols, line = made.order == Order::row ? cols : rows;
  if (map->find("ld"))
    made.ld = integer(*map, "ld", line, INT64_C(1) << 32, line);
  if (made.buffer < launch.buffers.size()) {
    const ForeignBuffer &of = launch.buffers[made.buffer];
    uint64_t needed = uint64_t(lines - 1) * made.ld.value_or(line) + line;
    if (of.count < needed)
      diags.report(Diag::launch_kind, map->range, key,
                   formatv("a buffer of {0} elements or more; `{1}` has {2}", needed, of.name, of.count).str());
    if (!parsedElem(of.type) || !isKnown(*parsedElem(of.type)))
      diags.report(Diag::run_type, map->range, ptx::nameOf(of.type));
  }
  return made;
}

void Reader::gemm(const YamlNode &node, ForeignExpect &into) {
  if (!isMap(node, "gemm", {"a", "b", "c", "d", "m", "n", "k", "alpha", "beta", "accumulator", "exact"},
             {"a", "b", "d", "m", "n", "k"}))
    return;
  constexpr int64_t most = INT64_C(1) << 20;
  into.m = integer(node, "m", 1, most, 1);
  into.n = integer(node, "n", 1, most, 1);
  into.k = integer(node, "k", 1, most, 1);
  into.a = matrix(node, "a", into.m, into.k);
  into.b = matrix(node, "b", into.k, into.n);
  into.d = matrix(node, "d", into.m, into.n);
  into.c = node.find("c") ? matrix(node, "c", into.m, into.n) : into.d;
  if (const YamlNode *alpha = node.find("alpha"))
    into.alpha = number(*alpha, "alpha").value_or(1);
  if (const YamlNode *beta = node.find("beta"))
    into.beta = number(*beta, "beta").value_or(0);
  word<Elem>(node, "accumulator", {{"f32", Elem::f32}, {"f16", Elem::f16}, {"f64", Elem::f64}, {"s32", Elem::s32}},
             into.accumulator);
  word<bool>(node, "exact", {{"true", true}, {"false", false}}, into.exact);
}

void Reader::expectation(const YamlNode &node) {
  ForeignExpect made;
  if (!isMap(node, "expect", {"gemm", "buffer", "each", "values", "same", "tolerance", "from", "count"}))
    return;
  unsigned kinds = 0;
  for (StringRef key : {"gemm", "each", "values", "same"})
    kinds += node.find(key) != nullptr;
  if (kinds != 1 || (!node.find("gemm") && !node.find("buffer")))
    return (void)diags.report(Diag::launch_kind, node.range, "an entry of `expect`",
                              "`gemm`, or a `buffer` with one of `each`, `values`, `same`");
  if (const YamlNode *gemmNode = node.find("gemm")) {
    made.kind = ForeignExpect::Gemm;
    gemm(*gemmNode, made);
  } else {
    made.buffer = buffer(node, "buffer");
    range(node, made.buffer, made.from, made.count, UINT64_MAX);
  }
  if (const YamlNode *each = node.find("each"))
    if (auto value = formula(*each, "each")) {
      made.value = *value;
      if (made.buffer < launch.buffers.size())
        expectValues(*value, *each, "each", made.from, made.count, launch.buffers[made.buffer].count);
    }
  if (const YamlNode *values = node.find("values")) {
    made.kind = ForeignExpect::Values;
    made.values = numbers(*values, "values");
  }
  if (node.find("same")) {
    made.kind = ForeignExpect::Same;
    made.other = buffer(node, "same");
    if (made.other < launch.buffers.size() && launch.buffers[made.other].count < made.from + made.count)
      diags.report(Diag::launch_kind, node.range, "same", "a buffer with as many elements");
  }
  if (const YamlNode *tolerance = node.find("tolerance"))
    made.tolerance = number(*tolerance, "tolerance").value_or(0);
  launch.expect.push_back(std::move(made));
}

void Reader::print(const YamlNode &node) {
  if (!isMap(node, "print", {"buffer", "from", "count"}, {"buffer"}))
    return;
  ForeignPrint made;
  made.buffer = buffer(node, "buffer");
  range(node, made.buffer, made.from, made.count, 16);
  launch.print.push_back(made);
}

bool Reader::read(const YamlNode &root) {
  if (!isMap(root, "a launch file",
             {"kernel", "grid", "block", "cluster", "shared", "buffers", "args", "expect", "print"}, {"block"}))
    return false;
  kernel(root);
  geometry(root);
  for (const ptx::Variable &variable : module.vars)
    takeRoom(variable.bytes(), root.range);
  if (const YamlNode *buffers = root.find("buffers")) {
    if (buffers->kind != YamlNode::Map)
      diags.report(Diag::launch_kind, buffers->range, "buffers", "a map from names to {type, size, fill}");
    for (const YamlEntry &one : buffers->entries)
      bufferOf(one);
  }
  for (const YamlNode &node : items(root.find("args"), "args"))
    launch.args.push_back(arg(node, 0));
  matchParams(root);
  for (const YamlNode &node : items(root.find("expect"), "expect"))
    expectation(node);
  for (const YamlNode &node : items(root.find("print"), "print"))
    print(node);
  return true;
}
} // namespace

std::optional<ForeignLaunch> readForeign(StringRef text, const ptx::Module &module, Diags &diags) {
  unsigned before = diags.numErrors();
  auto root = parseYaml(text, diags);
  if (!root)
    return std::nullopt;
  Reader reader(module, diags);
  bool read = reader.read(*root);
  return read && diags.numErrors() == before ? std::optional(std::move(reader.launch)) : std::nullopt;
}

} // namespace gemmc::run
