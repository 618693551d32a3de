// The spelling of every word of a spec, in the order of its enumeration.
#include "Table.h"
#include "llvm/ADT/ArrayRef.h"

using llvm::ArrayRef;
using llvm::StringRef;

namespace gemmc {
namespace {
constexpr StringRef targets[] = {"sm_80", "sm_86", "sm_89", "sm_90a"};
constexpr StringRef instructions[] = {"wmma", "mma", "wgmma", "fma"};
constexpr StringRef copies[] = {"ld", "cp_async", "tma"};
constexpr StringRef schedules[] = {"pipelined", "cooperative", "pingpong"};
constexpr StringRef swizzles[] = {"none", "32B", "64B", "128B", "padded", "xor", "blocked"};
constexpr StringRef rasterOrders[] = {"along_m", "along_n", "hilbert"};
constexpr StringRef schedulers[] = {"static", "dynamic"};
constexpr StringRef switches[] = {"off", "on"};
constexpr StringRef repacks[] = {"off", "on", "inside"};
constexpr StringRef triggers[] = {"start", "sums", "end"};
constexpr StringRef stores[] = {"direct", "staged", "tma"};
constexpr StringRef splitModes[] = {"none", "split_k", "stream_k"};
constexpr StringRef splitPlaces[] = {"workspace", "cluster"};
constexpr StringRef cachePolicies[] = {"normal", "evict_first", "evict_last"};
constexpr StringRef fragmentLoads[] = {"ldmatrix", "lds", "descriptor", "wmma_load", "direct"};
constexpr StringRef fragmentOrders[] = {"snake", "plain"};
constexpr StringRef bitOperations[] = {"none", "xor", "and"};
constexpr StringRef orders[] = {"row", "col"};
} // namespace

namespace spec {
template <> ArrayRef<StringRef> wordsOf<Target>() { return targets; }
template <> ArrayRef<StringRef> wordsOf<Instruction>() { return instructions; }
template <> ArrayRef<StringRef> wordsOf<CopyKind>() { return copies; }
template <> ArrayRef<StringRef> wordsOf<Schedule>() { return schedules; }
template <> ArrayRef<StringRef> wordsOf<Swizzle>() { return swizzles; }
template <> ArrayRef<StringRef> wordsOf<RasterOrder>() { return rasterOrders; }
template <> ArrayRef<StringRef> wordsOf<Scheduler>() { return schedulers; }
template <> ArrayRef<StringRef> wordsOf<Persistence>() { return switches; }
template <> ArrayRef<StringRef> wordsOf<Repack>() { return repacks; }
template <> ArrayRef<StringRef> wordsOf<Trigger>() { return triggers; }
template <> ArrayRef<StringRef> wordsOf<StoreKind>() { return stores; }
template <> ArrayRef<StringRef> wordsOf<SplitMode>() { return splitModes; }
template <> ArrayRef<StringRef> wordsOf<SplitThrough>() { return splitPlaces; }
template <> ArrayRef<StringRef> wordsOf<CachePolicy>() { return cachePolicies; }
template <> ArrayRef<StringRef> wordsOf<FragmentLoad>() { return fragmentLoads; }
template <> ArrayRef<StringRef> wordsOf<FragmentOrder>() { return fragmentOrders; }
template <> ArrayRef<StringRef> wordsOf<BitOperation>() { return bitOperations; }
template <> ArrayRef<StringRef> wordsOf<Order>() { return orders; }
bool isSwitch(const Domain &domain) { return ArrayRef(domain.words).take_front(2) == wordsOf<Persistence>(); }
} // namespace spec

StringRef nameOf(Target value) { return targets[static_cast<unsigned>(value)]; }
StringRef nameOf(Instruction value) { return instructions[static_cast<unsigned>(value)]; }
StringRef nameOf(CopyKind value) { return copies[static_cast<unsigned>(value)]; }
StringRef nameOf(Schedule value) { return schedules[static_cast<unsigned>(value)]; }
StringRef nameOf(Swizzle value) { return swizzles[static_cast<unsigned>(value)]; }
StringRef nameOf(RasterOrder value) { return rasterOrders[static_cast<unsigned>(value)]; }
StringRef nameOf(Scheduler value) { return schedulers[static_cast<unsigned>(value)]; }
StringRef nameOf(Persistence value) { return switches[static_cast<unsigned>(value)]; }
StringRef nameOf(Repack value) { return repacks[static_cast<unsigned>(value)]; }
StringRef nameOf(Trigger value) { return triggers[static_cast<unsigned>(value)]; }
StringRef nameOf(StoreKind value) { return stores[static_cast<unsigned>(value)]; }
StringRef nameOf(SplitMode value) { return splitModes[static_cast<unsigned>(value)]; }
StringRef nameOf(SplitThrough value) { return splitPlaces[static_cast<unsigned>(value)]; }
StringRef nameOf(CachePolicy value) { return cachePolicies[static_cast<unsigned>(value)]; }
StringRef nameOf(FragmentLoad value) { return fragmentLoads[static_cast<unsigned>(value)]; }
StringRef nameOf(FragmentOrder value) { return fragmentOrders[static_cast<unsigned>(value)]; }
StringRef nameOf(BitOperation value) { return bitOperations[static_cast<unsigned>(value)]; }

} // namespace gemmc
