// Every row of the instruction table that the emulator models is executed by some test of this program.
#include "core_harness.h"
#include "gemmc/PTX/Ops.h"

namespace gemmc::emu::test {
namespace {
/// Rows without a test of their own, and why.
bool isExempt(ptx::Op op) {
  switch (op) {
  case ptx::Op::Trap: // ends in a finding: EmuControl.Trap
    return true;
  default:
    return false;
  }
}

/// Looks when all tests have run; a selection of them proves nothing.
class Coverage : public ::testing::Environment {
  void TearDown() override {
    if (GTEST_FLAG_GET(filter) != "*" || ::testing::UnitTest::GetInstance()->failed_test_count())
      return;
    for (unsigned i = 0; i < ptx::numOps; ++i) {
      auto op = static_cast<ptx::Op>(i);
      bool covered = executedRows().count(op) || isExempt(op);
      EXPECT_TRUE(covered || !isModelled(op)) << "no test executes the row " << ptx::nameOf(op).str();
    }
  }
};
const auto *const registered = ::testing::AddGlobalTestEnvironment(new Coverage);
} // namespace
} // namespace gemmc::emu::test
