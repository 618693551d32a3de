/// Calls as copies of what they call. PTX functions share nothing with their callers but parameters, so that a kernel
/// with the bodies in place of the calls means the same; whoever runs PTX then needs no stack.
#pragma once
#include "gemmc/PTX/IR.h"

namespace gemmc::ptx {

/// Replaces each `call` in `kernel` by the body of the function, with registers, labels and local variables of its own;
/// `.shared`, `.global` and `.const` variables of a function stay one, however often it is called. Statements keep
/// their lines. Calls stay that have no body to take: those of external functions, recursive ones, and those beyond
/// `maxStatements`.
void inlineCalls(const Module &module, Function &kernel, size_t maxStatements = 1'000'000);

} // namespace gemmc::ptx
