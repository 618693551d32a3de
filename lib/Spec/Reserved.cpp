// Names that a kernel may not have.
#include "Table.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using llvm::StringRef;

namespace gemmc::spec {

// PTX ISA, 4.3.2 Instruction Statements, table of reserved instruction keywords. Today's ptxas takes most of them as
// names; a future one need not.
static constexpr StringRef keywords =
    "abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx call clz "
    "clusterlaunchcontrol cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2 exit fence fma "
    "fns "
    "getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max mbarrier membar "
    "min mma mov movmatrix mul mul24 multimem nanosleep neg not or pmevent popc prefetch prefetchu prmt rcp red redux "
    "rem ret rsqrt sad selp set setmaxnreg setp shf shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix sub "
    "subc suld suq sured sust szext tanh tcgen05 tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd "
    "vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 "
    "wgmma wmma xor";

bool isReservedName(StringRef name) {
  static const llvm::StringSet<> words = [] {
    llvm::SmallVector<StringRef> list;
    keywords.split(list, ' ');
    llvm::StringSet<> set;
    for (StringRef word : list)
      set.insert(word);
    return set;
  }();
  return words.contains(name);
}

bool isGoodName(StringRef name) {
  bool letters = llvm::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || llvm::isDigit(c) || c == '_'; });
  return letters && !name.empty() && name.size() <= 63 && !llvm::isDigit(name[0]) && name != "_" && name != "auto" &&
         !name.starts_with("__") && !isReservedName(name);
}

} // namespace gemmc::spec
