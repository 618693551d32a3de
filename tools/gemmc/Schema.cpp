// gemmc schema, gemmc reference: what a spec may say, for editors and for readers.
#include "Tool.h"
#include "gemmc/Spec/Spec.h"

using namespace llvm;

namespace gemmc::tool::schema_cpp {
namespace {
cl::SubCommand schema("schema", "Print the JSON schema of specs");
cl::SubCommand reference("reference", "Print the reference page of specs (Markdown)");
cl::opt<std::string> output("o", cl::desc("Write to a file"), cl::value_desc("file"), cl::sub(schema),
                            cl::sub(reference));

int print(StringRef text) {
  Diags diags;
  writeFile(output, text, diags);
  return finish(diags);
}
Command runSchema(schema, [] { return print(specJsonSchema()); });
Command runReference(reference, [] { return print(specReference()); });
} // namespace
} // namespace gemmc::tool::schema_cpp
