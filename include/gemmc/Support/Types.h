/// Element types of matrices and accumulators. Every room speaks of a matrix element with these names; PTX register
/// types are a separate, larger set (`gemmc/PTX/IR.h`).
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace gemmc {

enum class Elem : uint8_t { f16, bf16, f32, f64, tf32, e4m3, e5m2, s8, u8, s32, s4, u4, b1 };
constexpr Elem lastElem = Elem::b1;

/// Width in bits of one element in memory (tf32 is stored as 32 bits).
unsigned bitsOf(Elem type);
/// Elements that one byte holds: s4, u4 and b1 lie packed in memory, the first one in the low bits; 1 for all others.
inline unsigned perByte(Elem type) { return bitsOf(type) < 8 ? 8 / bitsOf(type) : 1; }
/// Bytes of one element; of a packed one the byte that it shares.
inline unsigned bytesOf(Elem type) { return bitsOf(type) * perByte(type) / 8; }
/// Whole numbers, summed in s32.
bool isInteger(Elem type);
/// 8-bit floats, of whose sums the tensor cores keep 14 bits.
inline bool isFloat8(Elem type) { return type == Elem::e4m3 || type == Elem::e5m2; }
/// The spelling used in specs, IR text and PTX (`bf16`).
llvm::StringRef nameOf(Elem type);
std::optional<Elem> parseElem(llvm::StringRef name);

/// Order of a matrix in memory: `row` = the elements of a row are adjacent.
enum class Order : uint8_t { row, col };
inline llvm::StringRef nameOf(Order order) { return order == Order::row ? "row" : "col"; }

} // namespace gemmc
