#include "VerifyRules.h"
#include "gemmc/Layout/ColumnShares.h"
#include "gemmc/Tile/SharedTileOf.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace gemmc::tile {
namespace {
class Verifier {
public:
  Verifier(const Kernel &kernel, Diags &diags) : kernel(kernel), diags(diags) {}

  bool run() {
    unsigned before = diags.numErrors();
    for (llvm::StringRef name : launchVariables)
      variables.insert(name);
    words(kernel.root, "kernel");
    numbers(kernel.root, "kernel");
    for (const Op &op : kernel.body())
      declare(op);
    configuration();
    // What follows computes with the numbers.
    walk(kernel.body(), [&](const Op &op) { numbers(op, formOf(op.kind).spelling); });
    if (diags.numErrors() != before)
      return false;
    for (const Op &op : kernel.body())
      if (op.kind == OpKind::Tensor && op.has("rest"))
        rest(op);
    body(kernel.body(), true);
    roles();
    if (diags.numErrors() == before)
      places();
    return diags.numErrors() == before;
  }

private:
  /// What a pass added has no text of its own.
  llvm::SMRange placeOf(const Op &op) const { return op.range.isValid() ? op.range : kernel.root.range; }

  static bool isDeclaration(OpKind kind) { return kind <= OpKind::Fragment; }

  /// Fields of the kernel that are nothing without others.
  void configuration() {
    const Op &root = kernel.root;
    for (llvm::StringRef ring : {"stages", "shifted_stages"})
      if (root.has("in_flight") && root.has(ring) && root.expr("in_flight").isConst() && root.expr(ring).isConst() &&
          root.number("in_flight") >= root.number(ring))
        diags.report(Diag::tile_in_flight, placeOf(root), root.number("in_flight"), root.number(ring));
    if (root.has("trigger") && !root.has("dependent"))
      diags.report(Diag::tile_trigger, placeOf(root), root.word("trigger"));
    batch();
  }

  /// How far the lines of each matrix are off must be known.
  void batch() {
    auto refuse = [&](const Op &op, const char *what) { diags.report(Diag::tile_batch, placeOf(op), what); };
    const bool several = kernel.root.has("batch");
    walk(kernel.body(), [&](const Op &op) {
      if (op.kind == OpKind::Tensor && op.has("batch") && !several)
        refuse(op, "a tensor's `batch` is for a kernel with `batch`");
      else if (op.kind == OpKind::Tensor && op.has("shift") && op.has("batch") && !op.expr("batch").isConst())
        refuse(op, "lines that are shifted (`shift`) are of matrices a known distance apart");
    });
  }

  /// Copies and barriers count on it.
  void rest(const Op &tensor) {
    const std::string &name = tensor.subject.name;
    const Op *shared = name == "A" || name == "B" ? kernel.declaration("s" + name) : nullptr;
    const Expr &extent = tensor.expr(name == "A" ? "rows" : "cols");
    bool read = shared && shared->kind == OpKind::Shared && !tensor.has("shift");
    if (!extent.isConst()) // no CTAs share a tile whose end comes at launch
      read &= kernel.root.item("cluster", 0) * kernel.root.item("cluster", 1) == 1;
    const Expr right = read ? lastPart(extent, shared->item("extent", 0)) : Expr(0);
    if (right.isConst(0) || tensor.expr("rest") != right)
      diags.report(Diag::tile_rest, placeOf(tensor), name, tensor.expr("rest").str(), right.str());
  }

  void clear(const Op &op) {
    const Op *tensor = kernel.declaration(op.subject.name == "sA" ? "A" : op.subject.name == "sB" ? "B" : "");
    if (!tensor || !tensor->has("rest"))
      diags.report(Diag::tile_clear, placeOf(op), op.subject.name);
  }

  void declare(const Op &op) {
    if (isDeclaration(op.kind) && !declared.try_emplace(op.subject.name, &op).second)
      diags.report(Diag::tile_redeclared, placeOf(op), op.subject.name);
  }

  void body(const std::vector<Op> &ops, bool top) {
    llvm::SmallVector<std::string> added;
    auto add = [&](llvm::StringRef name) {
      if (variables.insert(name).second)
        added.push_back(name.str());
    };
    for (const Op &op : ops) {
      if (isDeclaration(op.kind) && !top)
        diags.report(Diag::tile_declaration_place, placeOf(op), formOf(op.kind).spelling);
      if (op.kind == OpKind::Cursor) {
        add(op.subject.name);
        cursors[op.subject.name] = &op;
      }
      one(op);
      if (op.kind == OpKind::Clear)
        clear(op);
      if (op.has("block"))
        blockOf(op);
      if (op.kind == OpKind::Store && op.has("sectors") && !storesSectors(op))
        diags.report(Diag::tile_store_sectors, placeOf(op));
      if (op.kind == OpKind::Exchange || (op.kind == OpKind::Gather && op.has("owners")))
        owners(op);
      if (op.kind == OpKind::Late)
        late(op);
      for (const Op &inner : op.body)
        if (inner.kind == OpKind::Late && (!walksByItself(op) || &inner != firstLate(op)))
          diags.report(Diag::tile_late, placeOf(inner));
      if (top && op.kind == OpKind::Late)
        diags.report(Diag::tile_late, placeOf(op));
      if (op.body.empty())
        continue;
      llvm::SmallVector<std::string> own;
      auto scoped = [&](llvm::StringRef name) {
        if (variables.insert(name).second)
          own.push_back(name.str());
      };
      if (op.kind == OpKind::Tiles) {
        scoped("tm");
        scoped("tn");
        if (op.has("parts")) {
          cutSteps(op);
          scoped("kf");
          scoped("kn");
        }
      } else if (op.kind == OpKind::For) {
        scoped(op.subject.name);
      } else if (op.kind == OpKind::Role) {
        scoped("wg"); // the warpgroup's number in its role
      }
      body(op.body, false);
      for (const std::string &name : own)
        variables.erase(name);
    }
    for (const std::string &name : added)
      variables.erase(name);
  }

  void one(const Op &op) {
    llvm::StringRef spelling = formOf(op.kind).spelling;
    words(op, spelling);
    if (op.kind == OpKind::Arrive && op.has("along") != op.has("from")) // of the neighbours that arrive at all others
      diags.report(Diag::tile_missing_attribute, placeOf(op), spelling, op.has("along") ? "from" : "along");
    for (const Attr &attr : op.attrs) {
      if (const auto *expr = std::get_if<Expr>(&attr.value))
        inScope(*expr, op);
      if (const auto *list = std::get_if<std::vector<Expr>>(&attr.value))
        for (const Expr &expr : *list)
          inScope(expr, op);
    }
    if (op.kind == OpKind::Advance && (!cursors.count(op.subject.name) || !variables.contains(op.subject.name)))
      diags.report(Diag::tile_undeclared, placeOf(op), op.subject.name);
    for (const UseRule &rule : useRules)
      if (rule.op == op.kind && (rule.key.empty() || op.has(rule.key)))
        use(op, rule.key.empty() ? op.subject : op.ref(rule.key), rule.wanted, rule.orElse);
  }

  /// A row block is one of those of the warpgroup's tile; only some stores and sums go block by block.
  void blockOf(const Op &op) {
    constexpr int64_t blockRows = 64;
    const Op *acc = kernel.declaration(op.kind == OpKind::Store ? op.ref("from").name : op.subject.name);
    if (!acc || acc->kind != OpKind::Accumulator)
      return; // reported as what it is
    int64_t blocks = acc->has("warp") && kernel.word("instruction") == "wgmma" ? acc->item("warp", 0) / blockRows : 0;
    if (op.number("block") >= blocks)
      diags.report(Diag::tile_row_block, placeOf(op), op.number("block"), formOf(op.kind).spelling, blocks);
    else if (op.kind == OpKind::Store && !storesBlocks(op))
      diags.report(Diag::tile_store_block, placeOf(op));
    else if (op.kind == OpKind::Keep && acc->word("type") != "f32" && acc->word("type") != "f16")
      diags.report(Diag::tile_keep, placeOf(op));
  }
  bool storesSectors(const Op &op) const {
    const Op *d = kernel.declaration(op.subject.name);
    const bool rows = d && d->kind == OpKind::Tensor && d->word("order") == "row";
    return rows && op.word("via") == "staged" && llvm::is_contained({"f16", "bf16", "f32", "s32"}, d->word("type"));
  }
  bool storesBlocks(const Op &op) const {
    const Op *d = kernel.declaration(op.subject.name);
    const Op *lines = op.has("through") ? kernel.declaration(op.ref("through").name) : nullptr;
    return op.word("via") == "tma" && d && d->kind == OpKind::Tensor && lines && lines->kind == OpKind::Shared;
  }

  /// What is done late is the store of blocks that wait.
  void late(const Op &op) {
    auto waits = [&](const Op &store) {
      bool kept = false;
      walk(kernel.body(), [&](const Op &keep) {
        kept |= keep.kind == OpKind::Keep && store.has("from") && keep.subject.name == store.ref("from").name &&
                store.has("block") && keep.number("block") == store.number("block");
      });
      return store.kind == OpKind::Store && kept;
    };
    if (!llvm::all_of(op.body, waits))
      diags.report(Diag::tile_late, placeOf(op));
  }
  static const Op *firstLate(const Op &tiles) {
    return &*llvm::find_if(tiles.body, [](const Op &op) { return op.kind == OpKind::Late; });
  }

  void cutSteps(const Op &tiles) {
    const Op &root = kernel.root;
    if (tiles.word("parts") == "stream_k" && root.has("cluster") &&
        root.item("cluster", 0) * root.item("cluster", 1) > 1)
      diags.report(Diag::tile_parts_cluster, placeOf(tiles));
  }

  /// Tiles whose one before is known to the warps that have them.
  static bool walksByItself(const Op &op) {
    return op.kind == OpKind::Tiles && !op.has("parts") && !op.has("gives") && !op.has("takes");
  }

  void words(const Op &op, llvm::StringRef spelling) {
    for (const WordRule &rule : wordRules()) {
      if (spelling != rule.spelling || !op.has(rule.key))
        continue;
      llvm::StringRef text = op.word(rule.key);
      if (llvm::find(rule.allowed, text) == rule.allowed.end())
        diags.report(Diag::tile_bad_word, placeOf(op), rule.key, spelling, text, llvm::join(rule.allowed, ", "));
    }
    if (op.kind == OpKind::Store || op.kind == OpKind::Combine || op.kind == OpKind::Keep)
      for (llvm::StringRef key : {"alpha", "beta"})
        if (op.has(key))
          scale(op, spelling, key);
  }

  void scale(const Op &op, llvm::StringRef spelling, llvm::StringRef key) {
    const bool signs = key == "alpha"; // of the product
    const llvm::StringRef text = op.word(key);
    double value = 0;
    if (text != "dynamic" && !(signs && text == "-dynamic") && (text.getAsDouble(value) || !std::isfinite(value)))
      diags.report(Diag::tile_bad_word, placeOf(op), key, spelling, text,
                   signs ? "a finite number, dynamic, -dynamic" : "a finite number, dynamic");
  }

  void numbers(const Op &op, llvm::StringRef spelling) {
    for (const NumberRule &rule : numberRules) {
      if (spelling != rule.spelling || !op.has(rule.key))
        continue;
      if (rule.count)
        list(op, rule);
      else if (!fits(op.expr(rule.key), rule))
        diags.report(Diag::tile_bad_number, placeOf(op), rule.key, spelling, op.expr(rule.key).str(),
                     llvm::formatv(textOf(rule), "a constant", rule.least, rule.most).str());
    }
    if (op.kind == OpKind::For && op.has("unroll"))
      unrolled(op);
  }

  /// Owners of sums are among those who have parts of them, and none is without columns. Parts in the workspace are
  /// shared out among the warpgroups of roles, and not a second time.
  void owners(const Op &op) {
    const bool gathers = op.kind == OpKind::Gather;
    if (!op.expr("owners").isConst() || (!gathers && !op.expr("slices").isConst()))
      return; // `numbers` says so
    const bool whole = gathers && (kernel.root.has("cluster_k") || kernel.number("consumers") == 0);
    const int64_t parts = whole ? 1 : gathers ? kernel.root.number("split_slices", 1) : op.number("slices");
    const int64_t owners = op.number("owners"), columns = kernel.root.item("warp", 1),
                  most = shareColumns(columns, std::max<int64_t>(1, std::min(owners, parts))).owners;
    if (owners != most)
      diags.report(Diag::tile_bad_number, placeOf(op), "owners", formOf(op.kind).spelling, owners,
                   llvm::formatv("{0}, who have {1} of a warpgroup's {2} columns each, the last one what is left", most,
                                 shareColumns(columns, most).each, columns)
                       .str());
  }

  void list(const Op &op, const NumberRule &rule) {
    const std::vector<Expr> &items = op.list(rule.key);
    if (items.size() == rule.count && llvm::all_of(items, [&](const Expr &item) { return fits(item, rule); }))
      return;
    std::string text = llvm::join(llvm::map_range(items, [](const Expr &item) { return item.str(); }), ", ");
    diags.report(Diag::tile_bad_number, placeOf(op), rule.key, rule.spelling, "[" + text + "]",
                 llvm::formatv(textOf(rule), llvm::Twine(rule.count) + " constants", rule.least, rule.most).str());
  }

  /// An unrolled loop is as long as its bounds say.
  void unrolled(const Op &op) {
    for (llvm::StringRef key : {"from", "to"})
      if (!fits(op.expr(key), {"for", "", 0, maxStages}))
        diags.report(Diag::tile_bad_number, placeOf(op), key, "for", op.expr(key).str(),
                     llvm::formatv("a constant from 0 to {0} where `unroll` stands", maxStages).str());
  }

  static bool fits(const Expr &value, const NumberRule &rule) {
    if (!value.isConst())
      return rule.kind == NumberRule::orLater;
    return value.constant() >= rule.least && value.constant() <= rule.most &&
           (rule.kind != NumberRule::powerOfTwo || llvm::isPowerOf2_64(value.constant()));
  }
  static const char *textOf(const NumberRule &rule) {
    return rule.kind == NumberRule::orLater      ? "{0} from {1} to {2}, or an expression of variables"
           : rule.kind == NumberRule::powerOfTwo ? "{0} from {1} to {2}, powers of two only"
                                                 : "{0} from {1} to {2}";
  }

  /// Where shared memory has its places, they are aligned, in it, and of one thing each.
  void places() {
    llvm::SmallVector<Place> taken;
    for (const Op &op : kernel.body()) {
      if (!op.has("offset") || (op.kind == OpKind::Shared && !op.has("swizzle")))
        continue;
      const Place now = placeIn(op);
      auto complain = [&](const std::string &why) {
        diags.report(Diag::tile_offset, placeOf(op), op.subject.name, now.begin, why);
      };
      if (now.begin % now.align)
        complain(llvm::formatv("it must be a multiple of {0}", now.align));
      if (kernel.root.has("shared") && now.end > kernel.root.number("shared"))
        complain(llvm::formatv("its {0} bytes end at {1}, and the kernel has `shared={2}`", now.end - now.begin,
                               now.end, kernel.root.number("shared")));
      for (const Place &other : taken)
        if (now.begin < other.end && other.begin < now.end && !mayMeet(op, *other.op))
          complain(
              llvm::formatv("`{0}` has the bytes from {1} to {2}", other.op->subject.name, other.begin, other.end - 1));
      taken.push_back(now);
    }
  }
  struct Place {
    const Op *op;
    int64_t begin, end, align;
  };
  static Place placeIn(const Op &op) {
    constexpr int64_t barrierBytes = 8;
    const bool isBarrier = op.kind == OpKind::Barrier;
    const int64_t each = isBarrier ? barrierBytes : tileOf(op).stageBytes(), begin = op.number("offset");
    return {&op, begin, begin + each * op.number("stages", 1), isBarrier ? barrierBytes : tileOf(op).alignment()};
  }
  /// What lies `over` the operands is used while they are not.
  static bool mayMeet(const Op &one, const Op &two) {
    return (one.has("over") && (two.has("over") || isOperandTile(two))) || (two.has("over") && isOperandTile(one));
  }

  void inScope(const Expr &expr, const Op &op) {
    expr.forEachVar([&](llvm::StringRef name) {
      if (!variables.contains(name))
        diags.report(Diag::tile_unknown_variable, placeOf(op), name);
    });
  }

  /// Checks a reference: declared, of the right kind, indexed as that kind is. Staged things take one index, which may
  /// be left out while there is one stage only.
  void use(const Op &op, const Ref &ref, OpKind wanted, std::optional<OpKind> orElse) {
    auto found = declared.find(ref.name);
    if (found == declared.end()) {
      diags.report(Diag::tile_undeclared, placeOf(op), ref.name);
      return;
    }
    const Op &decl = *found->second;
    if (orElse && decl.kind == *orElse)
      wanted = *orElse;
    unsigned indices = wanted == OpKind::Accumulator ? 0 : wanted == OpKind::Tensor ? 2 : 1;
    if (decl.kind != wanted) {
      diags.report(Diag::tile_wrong_kind, placeOf(op), ref.name, formOf(decl.kind).spelling, formOf(op.kind).spelling,
                   formOf(wanted).spelling);
      return;
    }
    bool mayOmit = wanted == OpKind::Shared && decl.number("stages", 1) == 1;
    if (ref.index.size() != indices && !(mayOmit && ref.index.empty()))
      diags.report(Diag::tile_index_count, placeOf(op), ref.name, indices, ref.index.size());
    const int64_t indexEnd = indices != 1 ? maxSize : decl.number(wanted == OpKind::Fragment ? "buffers" : "stages", 1);
    for (const Expr &index : ref.index) {
      inScope(index, op);
      if (index.isConst() && (index.constant() < 0 || index.constant() >= indexEnd))
        diags.report(Diag::tile_index, placeOf(op), ref.name, index.str(), indexEnd - 1);
    }
    if (ref.index.size() == 1 && ref.index[0].isVar() && decl.has("stages"))
      if (auto cursor = cursors.find(ref.index[0].name()); cursor != cursors.end())
        if (cursor->second->number("stages") != decl.number("stages"))
          diags.report(Diag::tile_stage_count, placeOf(op), cursor->first(), cursor->second->number("stages"), ref.name,
                       decl.number("stages"));
  }

  void roles() {
    const Op *owner[64] = {};
    int64_t warps = kernel.number("threads") / 32;
    for (const Op &op : kernel.body()) {
      if (op.kind != OpKind::Role)
        continue;
      int64_t first = op.item("warps", 0), count = op.item("warps", 1);
      if (first < 0 || count < 1 || first + count > warps || warps > 64) {
        diags.report(Diag::tile_role_range, placeOf(op), op.subject.name, first, first + count - 1, warps);
        continue;
      }
      for (int64_t warp = first; warp < first + count; ++warp) {
        if (owner[warp]) {
          diags.report(Diag::tile_role_overlap, placeOf(op), owner[warp]->subject.name, op.subject.name, warp);
          break;
        }
        owner[warp] = &op;
      }
    }
  }

  const Kernel &kernel;
  Diags &diags;
  llvm::StringMap<const Op *> declared, cursors;
  llvm::StringSet<> variables;
};
} // namespace

bool verify(const Kernel &kernel, Diags &diags) { return Verifier(kernel, diags).run(); }
} // namespace gemmc::tile
