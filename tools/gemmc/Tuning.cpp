#include "Tuning.h"

using namespace llvm;

namespace gemmc::tool {

TuningInput::TuningInput(cl::SubCommand &sub)
    : database("database", cl::desc("The tuning database (default: $GEMMC_TUNING or ~/.cache/gemmc/tuning.db)"),
               cl::value_desc("file"), cl::sub(sub)),
      deviceName("device-name", cl::desc("The device whose measurements count (default for sm_90a: NVIDIA H200)"),
                 cl::value_desc("name"), cl::sub(sub)),
      off("no-tuning", cl::desc("Take the model's choice, whatever was measured"), cl::sub(sub)) {}

tune::ChooseOptions TuningInput::get() const {
  tune::ChooseOptions options;
  options.database = database;
  options.device = deviceName;
  options.off = off;
  return options;
}

} // namespace gemmc::tool
