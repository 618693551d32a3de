/// Reads of global memory that the cluster has not written to. Most are those of operands, which nobody ever writes,
/// and a cell of shadow for each of their granules is dear: so they are noted one behind the other, and entered into
/// the shadow when the cluster first writes to their allocation.
#pragma once
#include "Shadow.h"
#include "gemmc/Emu/Emulator.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace gemmc::emu {

class GlobalReads {
public:
  struct Read {
    uint64_t address = 0, bytes = 0;
    Access access;
  };
  using Enter = llvm::function_ref<void(const Read &)>;
  /// Notes a read. False: the bytes have a shadow. Notes that would cost more than it are entered there.
  bool noted(const Memory &memory, const Read &read, Enter enter);
  /// From now on reads of this allocation have a shadow; enters those before.
  void written(const Memory &memory, uint64_t address, Enter enter);

private:
  struct Note {
    uint64_t address = 0;
    uint32_t bytes = 0;
    uint32_t access = 0; ///< Index in `accesses`.
    Mask lanes = 0;      ///< Each reads `bytes`, one behind the other; 0: those of the access, all of them.
  };
  struct Allocation {
    uint64_t begin = 0, size = 0;
    bool hasShadow = false;
    std::vector<Access> accesses;
    std::vector<Note> notes;
  };
  Allocation *find(const Memory &memory, uint64_t address);
  static void enterAll(Allocation &allocation, Enter enter);

  std::vector<std::unique_ptr<Allocation>> allocations;
  Allocation *last = nullptr;
};

} // namespace gemmc::emu
