#include "llvm/Support/JSON.h"
#include "gemmc/Plan/Plan.h"

namespace gemmc {
namespace json = llvm::json;

namespace {
/// A number or a list of numbers as such, any other value as a string.
json::Value valueOf(llvm::StringRef yaml) {
  if (llvm::Expected<json::Value> value = json::parse(yaml); value && !value->getAsNull())
    return std::move(*value);
  else if (!value)
    llvm::consumeError(value.takeError());
  return yaml.str(); // a json::Value only refers to a StringRef
}

json::Array fieldsOf(const Spec &spec) {
  json::Array fields;
  for (FieldText &text : fieldTexts(spec)) {
    json::Object field{{"path", text.path.str()}, {"value", valueOf(text.value)}, {"given", text.given}};
    if (!text.reason.empty())
      field["reason"] = std::move(text.reason);
    fields.push_back(std::move(field));
  }
  return fields;
}

json::Value sizeOf(const Expr &size) { return size.isConst() ? json::Value(size.constant()) : json::Value(size.str()); }

json::Object operandOf(const Plan &plan, const PlanOperand &operand) {
  json::Object object{{"buffer", operand.buffer},
                      {"type", nameOf(operand.type)},
                      {"order", nameOf(operand.order)},
                      {"ld", sizeOf(operand.ld)},
                      {"align", int64_t(operand.align)}};
  if (!plan.batch.isConst(1))
    object["batch_stride"] = sizeOf(operand.batchStride);
  return object;
}
} // namespace

std::string printPlanJson(const Plan &plan) {
  json::Object kernel{{"swapped", plan.swapped},
                      {"m", sizeOf(plan.m)},
                      {"n", sizeOf(plan.n)},
                      {"k", sizeOf(plan.k)},
                      {"a", operandOf(plan, plan.a)},
                      {"b", operandOf(plan, plan.b)},
                      {"c", operandOf(plan, plan.c)},
                      {"d", operandOf(plan, plan.d)},
                      {"block", json::Array{plan.blockM, plan.blockN, plan.blockK}},
                      {"warp", json::Array{plan.warpM, plan.warpN, plan.warpK}},
                      {"cluster", json::Array{plan.clusterM, plan.clusterN, plan.clusterK}},
                      {"threads", int64_t(plan.threads)},
                      {"consumer_warpgroups", int64_t(plan.consumerWarpgroups)},
                      {"producer_registers", int64_t(plan.producerRegs)},
                      {"consumer_registers", int64_t(plan.consumerRegs)},
                      {"shared_bytes", plan.sharedBytes},
                      {"copy_bytes", json::Array{int64_t(plan.copyBytesA), int64_t(plan.copyBytesB)}}};
  if (!plan.batch.isConst(1))
    kernel["batch"] = sizeOf(plan.batch);
  json::Array requirements;
  for (const Expr &requirement : plan.requirements)
    requirements.push_back(requirement.str());
  json::Object object{
      {"fields", fieldsOf(plan.spec)}, {"kernel", std::move(kernel)}, {"requirements", std::move(requirements)}};
  return llvm::formatv("{0:2}\n", json::Value(std::move(object))).str();
}

} // namespace gemmc
