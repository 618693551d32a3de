#include "Protocol.h"

namespace gemmc::microtests {

std::vector<Question> allQuestions() {
  std::vector<Question> questions;
  addTensorMapQuestions(questions);
  addWgmmaQuestions(questions);
  addSyncQuestions(questions);
  addReduceQuestions(questions);
  addAlignmentQuestions(questions);
  addRaceQuestions(questions);
  return questions;
}

std::string begin(bool hasMap, unsigned imageBytes, const std::string &directives) {
  std::string text = ".version 8.4\n.target sm_90a\n.address_size 64\n";
  text += ".visible .entry k(.param .u64 in, .param .u64 out";
  text += hasMap ? ", .param .align 64 .b8 tmap[128])\n" : ")\n";
  text += directives + "{\n.shared .align 1024 .b8 image[" + std::to_string(imageBytes) +
          "];\n.shared .align 8 .b8 barriers[64];\n";
  text += ".reg .b64 %in, %out, %map;\n.reg .b32 %t, %cta, %img, %bar;\n.reg .b32 %u<16>;\n.reg .b64 %x<16>;\n"
          ".reg .pred %p<8>;\n.reg .b16 %h<4>;\n"
          "mov.u32 %t, %tid.x;\nmov.u32 %cta, %ctaid.x;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
          "mov.u32 %img, image;\nmov.u32 %bar, barriers;\n";
  if (hasMap)
    text += "mov.b64 %map, tmap;\ncvta.param.u64 %map, %map;\n";
  return text;
}

std::string boundedWait(const std::string &label, unsigned offset, unsigned tries) {
  return llvm::formatv("mov.u32 %u0, 0;\nW{0}:\nmbarrier.test_wait.parity.shared.b64 %p0, [%bar+{1}], 0;\n"
                       "@%p0 bra D{0};\nadd.u32 %u0, %u0, 1;\nsetp.lt.u32 %p1, %u0, {2};\n@%p1 bra W{0};\nD{0}:\n",
                       label, offset, tries)
      .str();
}

std::string prepare(unsigned imageBytes, uint32_t pattern) {
  std::string text = "mad.lo.u32 %u1, %t, 4, %img;\nmov.u32 %u2, " + std::to_string(pattern) + ";\nmov.u32 %u3, 0;\n";
  text += "FILL:\nadd.u32 %u4, %u1, %u3;\nst.shared.b32 [%u4], %u2;\nadd.u32 %u3, %u3, 512;\nsetp.lt.u32 %p0, %u3, " +
          std::to_string(imageBytes) + ";\n@%p0 bra FILL;\n";
  text += "setp.eq.u32 %p7, %t, 0;\n@!%p7 bra READY;\n";
  for (unsigned i = 0; i < 8; ++i)
    text += "mbarrier.init.shared.b64 [%bar+" + std::to_string(8 * i) + "], 1;\n";
  return text + "fence.mbarrier_init.release.cluster;\nREADY:\nfence.proxy.async;\nbar.sync 0;\n";
}

std::string dump(unsigned imageBytes, unsigned offset) {
  return llvm::formatv("mad.lo.u32 %u1, %t, 4, %img;\nmad.wide.u32 %x1, %t, 4, %out;\nmov.u32 %u3, 0;\nDUMP:\n"
                       "add.u32 %u4, %u1, %u3;\nld.shared.b32 %u5, [%u4];\ncvt.u64.u32 %x2, %u3;\n"
                       "add.u64 %x2, %x1, %x2;\nst.global.b32 [%x2+{1}], %u5;\nadd.u32 %u3, %u3, 512;\n"
                       "setp.lt.u32 %p0, %u3, {0};\n@%p0 bra DUMP;\n",
                       imageBytes, offset)
      .str();
}

} // namespace gemmc::microtests
