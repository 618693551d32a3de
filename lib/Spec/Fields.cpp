// A spec as a list of texts, for other rooms that show it in their own form.
#include "Table.h"

namespace gemmc {
using namespace spec;

std::vector<FieldText> fieldTexts(const Spec &spec) {
  std::vector<FieldText> texts;
  for (const Row &row : rows())
    texts.push_back({row.path, row.print(spec), row.given(spec), row.reason(spec).str()});
  return texts;
}

} // namespace gemmc
