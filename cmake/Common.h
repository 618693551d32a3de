/// Precompiled for all rooms (GEMMC_PCH): what most sources include anyway. No source may count on it: builds without
/// it are the ordinary ones.
#pragma once
#include "gemmc/Support/Diag.h"
#include "gemmc/Support/Expr.h"
#include "gemmc/Support/Types.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>
