/// Element types of matrices and accumulators. Every room speaks of a matrix element with these names; PTX register
/// types are a separate, larger set (`gemmc/PTX/IR.h`).
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace gemmc {

enum class Elem : uint8_t { f16, bf16, f32, f64, tf32, e4m3, e5m2, s8, u8, s32, s4, u4, b1 };
constexpr Elem lastElem = Elem::b1;

/// The spelling of each type, indexed by `Elem`, and its width.
struct ElemRow {
  const char *name;
  unsigned bits;
};
inline constexpr ElemRow elemRows[] = {{"f16", 16}, {"bf16", 16}, {"f32", 32}, {"f64", 64}, {"tf32", 32},
                                       {"e4m3", 8}, {"e5m2", 8},  {"s8", 8},   {"u8", 8},   {"s32", 32},
                                       {"s4", 4},   {"u4", 4},    {"b1", 1}};

/// Width in bits of one element in memory (tf32 is stored as 32 bits).
constexpr unsigned bitsOf(Elem type) { return elemRows[static_cast<unsigned>(type)].bits; }
/// Elements that one byte holds: s4, u4 and b1 lie packed in memory, the first one in the low bits; 1 for all others.
constexpr unsigned perByte(Elem type) { return bitsOf(type) < 8 ? 8 / bitsOf(type) : 1; }
/// Bytes of one element; of a packed one the byte that it shares.
constexpr unsigned bytesOf(Elem type) { return bitsOf(type) * perByte(type) / 8; }
/// Whole numbers, summed in s32.
bool isInteger(Elem type);
/// 8-bit floats, of whose sums the tensor cores keep 14 bits.
constexpr bool isFloat8(Elem type) { return type == Elem::e4m3 || type == Elem::e5m2; }
/// The spelling used in specs, IR text and PTX (`bf16`).
llvm::StringRef nameOf(Elem type);
std::optional<Elem> parseElem(llvm::StringRef name);

/// Order of a matrix in memory: `row` = the elements of a row are adjacent.
enum class Order : uint8_t { row, col };
inline llvm::StringRef nameOf(Order order) { return order == Order::row ? "row" : "col"; }

} // namespace gemmc
