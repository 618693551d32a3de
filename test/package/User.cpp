// Uses one function of an installed room, LLVM's headers included, with the compiler's default settings.
#include <cstdio>
#include <gemmc/Support/Diag.h>

int main() {
  gemmc::Diags diags;
  llvm::StringRef text = diags.addSource("spec.yaml", "m: 1\nn: 2\n");
  std::string place = diags.place(llvm::SMLoc::getFromPointer(text.data() + 8));
  std::puts(place.c_str());
  return place == "spec.yaml:2:4" ? 0 : 1;
}
