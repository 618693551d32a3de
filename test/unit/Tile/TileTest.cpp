// The tile IR as a value and as text: no text crashes the reader or the verifier, and operations keep what they are
// given.
#include "gemmc/Tile/IR.h"
#include <gtest/gtest.h>

using namespace gemmc;
using namespace gemmc::tile;

namespace {
constexpr llvm::StringLiteral good = R"(# a comment
kernel gemm target=sm_90a threads=256 m=m n=n k=k block=[64, 64, 64] warp=[64, 64] cluster=[1, 1] instruction=wgmma copy=tma copy_bytes=[16, 16] stages=4 schedule=cooperative swizzle=128B raster=along_m group=8 persistent=on store=direct consumers=1 {
  tensor A buffer=a type=f16 rows=m cols=k order=row ld=lda align=16
  tensor B buffer=b type=f16 rows=k cols=n order=col ld=ldb align=16
  shared sA type=f16 extent=[64, 64] major=k stages=4
  barrier full stages=4 count=1
  accumulator acc type=f32 tile=[64, 64]
  role producer warps=[0, 4] regs=40 {
    elect warp=0 {
      cursor w stages=4
      tiles {
        for kt from=0 to=ceildiv(k, 64) {
          copy sA[w] from=A[tm * 64, kt * 64] via=tma signal=full[w] when=kt + 2 < k
          advance w by=1 + wg * 2
        }
      }
    }
  }
  role consumer warps=[4, 4] {
    tiles {
      zero acc
      store A[tm * 64, 0] from=acc alpha=1.5e+10 beta=-0 via=direct
    }
  }
}
)";

struct Read {
  Diags diags;
  std::optional<Kernel> kernel;
  explicit Read(llvm::StringRef text) : kernel(parse(diags.addSource("x.tile", text), diags)) {}
};

/// The reader's promise for any text: a kernel, or an error with a place; what was read verifies or is refused.
void survives(llvm::StringRef text) {
  Read read(text);
  ASSERT_EQ(read.kernel.has_value(), !read.diags.hasErrors()) << text.str();
  for (const Problem &problem : read.diags.all())
    ASSERT_TRUE(problem.range.isValid()) << problem.message << " in " << text.str();
  if (!read.kernel)
    return;
  bool verifies = verify(*read.kernel, read.diags);
  EXPECT_EQ(verifies, !read.diags.hasErrors());
  std::string once = print(*read.kernel);
  Read again(once);
  ASSERT_TRUE(again.kernel) << once;
  EXPECT_EQ(print(*again.kernel), once);
}

TEST(TileText, TheGoodKernelIsGood) {
  Read read(good);
  ASSERT_TRUE(read.kernel);
  EXPECT_TRUE(verify(*read.kernel, read.diags));
  EXPECT_EQ(print(*read.kernel), good.drop_until([](char c) { return c == 'k'; }));
}

TEST(TileText, CutAnywhere) {
  for (size_t size = 0; size < good.size(); ++size) {
    survives(good.take_front(size));
    // Only the last line's end may be missing.
    if (size + 1 < good.size()) {
      EXPECT_FALSE(Read(good.take_front(size)).kernel) << size;
    }
  }
}

TEST(TileText, AnyByteReplaced) {
  for (char byte : {'\0', '\n', '{', '}', '[', '=', '9', '-', '#', '\xff'})
    for (size_t at = 0; at < good.size(); at += 3) {
      std::string text = good.str();
      text[at] = byte;
      survives(text);
    }
}

TEST(TileText, AnyLineMissingOrTwice) {
  llvm::SmallVector<llvm::StringRef> lines;
  good.split(lines, '\n');
  for (size_t out = 0; out < lines.size(); ++out)
    for (bool twice : {false, true}) {
      std::string text;
      for (size_t i = 0; i < lines.size(); ++i)
        for (int copy = i != out ? 1 : twice ? 2 : 0; copy > 0; --copy)
          text += lines[i].str() + "\n";
      survives(text);
    }
}

TEST(TileText, DeepAndLong) {
  std::string head = good.split("  tensor").first.str();
  auto repeat = [](llvm::StringRef piece, int times) {
    std::string text;
    for (int i = 0; i < times; ++i)
      text += piece;
    return text;
  };
  survives(head + repeat("tiles {\n", 100000));
  survives(head + repeat("for kt from=0 to=", 100000));
  survives(head + "for kt from=0 to=" + repeat("(", 1000000));
  survives(head + "for kt from=0 to=" + repeat("-", 1000000));
  survives(head + "for kt from=0 to=1" + repeat(" + 1", 100000) + " {\n}\n}");
  survives(head + "zero " + repeat("a", 1000000) + "\n}");
  survives(head + "zero a[" + repeat("0, ", 100000) + "0]\n}");
  survives(repeat("}", 100000));
  survives(repeat("kernel ", 100000));
  survives(repeat("\n#", 100000));
}

TEST(TileText, NumbersOutOfEveryRange) {
  for (llvm::StringRef number :
       {"-1", "0", "9223372036854775807", "9223372036854775808", "-9223372036854775807 - 1", "1 / 0", "m"})
    for (llvm::StringRef key :
         {"threads=256", "stages=4", "group=8", "consumers=1", "regs=40", "warp=0", "count=1", "align=16"}) {
      std::string text = good.str();
      size_t at = text.find(key.str());
      ASSERT_NE(at, std::string::npos);
      text.replace(at, key.size(), (key.split('=').first + "=" + number).str());
      survives(text);
    }
  for (llvm::StringRef list :
       {"[]", "[1]", "[1, 2, 3, 4]", "[m, n]", "[0, -5]", "[9223372036854775807, 9223372036854775807]"})
    for (llvm::StringRef key : {"block=[64, 64, 64]", "warp=[64, 64]", "cluster=[1, 1]", "extent=[64, 64]",
                                "warps=[0, 4]", "tile=[64, 64]"}) {
      std::string text = good.str();
      text.replace(text.find(key.str()), key.size(), (key.split('=').first + "=" + list).str());
      survives(text);
    }
}

TEST(TileOp, KeepsAttributesInOrder) {
  Op op(OpKind::Copy, "sA");
  op.set("from", Ref{"A", {Expr::var("tm"), 0}}).set("via", "tma").set("bytes", 16);
  EXPECT_TRUE(op.has("via"));
  EXPECT_FALSE(op.has("when"));
  EXPECT_EQ(op.word("via"), "tma");
  EXPECT_EQ(op.word("multicast", "none"), "none");
  EXPECT_EQ(op.number("bytes"), 16);
  EXPECT_EQ(op.number("stages", 7), 7);
  EXPECT_EQ(op.ref("from").name, "A");
  op.set("via", "ld"); // replaces in place
  EXPECT_EQ(op.attrs[1].key, "via");
  EXPECT_EQ(op.word("via"), "ld");
  op.erase("via");
  EXPECT_FALSE(op.has("via"));
  EXPECT_EQ(op.attrs.size(), 2u);
}

TEST(TileKernel, FindsDeclarationsAndWalksParentsFirst) {
  Read read(good);
  ASSERT_TRUE(read.kernel);
  Kernel &kernel = *read.kernel;
  EXPECT_EQ(kernel.name(), "gemm");
  EXPECT_EQ(kernel.word("target"), "sm_90a");
  EXPECT_EQ(kernel.number("threads"), 256);
  EXPECT_EQ(kernel.root.item("block", 2), 64);
  ASSERT_TRUE(kernel.declaration("full"));
  EXPECT_EQ(kernel.declaration("full")->kind, OpKind::Barrier);
  EXPECT_FALSE(kernel.declaration("producer")); // a role is no declaration
  EXPECT_FALSE(kernel.declaration("nothing"));
  std::vector<OpKind> order;
  walk(std::as_const(kernel).body(), [&](const Op &op) { order.push_back(op.kind); });
  std::vector<OpKind> expected = {OpKind::Tensor,      OpKind::Tensor, OpKind::Shared, OpKind::Barrier,
                                  OpKind::Accumulator, OpKind::Role,   OpKind::Elect,  OpKind::Cursor,
                                  OpKind::Tiles,       OpKind::For,    OpKind::Copy,   OpKind::Advance,
                                  OpKind::Role,        OpKind::Tiles,  OpKind::Zero,   OpKind::Store};
  EXPECT_EQ(order, expected);
}

TEST(TileOps, EveryRowReadsWell) {
  for (unsigned kind = 0; kind <= unsigned(OpKind::Store); ++kind) {
    const OpForm &form = formOf(OpKind(kind));
    EXPECT_FALSE(form.spelling.empty());
    for (const AttrForm &attr : form.attrs)
      EXPECT_EQ(attr.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), llvm::StringRef::npos) << attr.key.str();
  }
  EXPECT_EQ(formOf(OpKind::WaitWgmma).spelling, "wait_wgmma");
  EXPECT_TRUE(formOf(OpKind::WaitWgmma).attrs[1].optional);
  EXPECT_TRUE(formOf(OpKind::Tiles).hasBody);
  EXPECT_EQ(formOf(OpKind::Tiles).subject, Subject::None);
}
} // namespace
