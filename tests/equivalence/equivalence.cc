#include "tests/equivalence/equivalence.h"

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/eval/evaluate.h"
#include "gangway/partition/partition.h"
#include "gangway/passes/pipeline.h"
#include "gangway/propagate/propagate.h"
#include "tests/equivalence/shards.h"

namespace gangway::equivalence {
namespace {

// Small whole numbers, so that sums are exact in any order as long as they stay small.
Literal RandomLeaf(const Shape& shape, std::mt19937_64& random) {
  Literal literal(WithoutLayout(shape));
  if (!shape.IsArray()) return literal;
  const int width = ByteWidth(shape.dtype());
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    const int64_t value = static_cast<int64_t>(random() % 9) - (IsUnsigned(shape.dtype()) ? 0 : 4);
    StoreDouble(shape.dtype(),
                shape.dtype() == DType::kPred ? static_cast<double>(value & 1) : static_cast<double>(value),
                literal.data() + i * width);
  }
  return literal;
}

Literal PackLeaves(const Shape& shape, std::vector<Literal>::const_iterator* next) {
  if (!shape.IsTuple()) return *(*next)++;
  std::vector<Literal> elements;
  for (const Shape& element : shape.tuple()) elements.push_back(PackLeaves(element, next));
  return Literal::Tuple(std::move(elements));
}

void UnpackLeaves(const Literal& literal, std::vector<Literal>* leaves) {
  if (!literal.shape().IsTuple()) {
    leaves->push_back(literal);
    return;
  }
  for (const Literal& element : literal.elements()) UnpackLeaves(element, leaves);
}

// The first difference; empty when there is none.
std::string Difference(const Literal& expected, const Literal& got, double tolerance) {
  const DType dtype = expected.shape().dtype();
  const int width = ByteWidth(dtype);
  double largest = 1;  // sums that cancel leave errors of the size of their terms
  for (int64_t i = 0; i < expected.shape().ElementCount(); ++i) {
    const double value = std::abs(ElementAsDouble(dtype, expected.data() + i * width));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (int64_t i = 0; i < expected.shape().ElementCount(); ++i) {
    const char *a = expected.data() + i * width, *b = got.data() + i * width;
    if (std::memcmp(a, b, width) == 0) continue;
    const double x = ElementAsDouble(dtype, a), y = ElementAsDouble(dtype, b);
    if (IsFloat(dtype) && ((std::isnan(x) && std::isnan(y)) || x == y || std::abs(x - y) <= tolerance * largest))
      continue;
    return absl::StrCat("element ", i, ": ", x, " expected, got ", y);
  }
  return "";
}

struct Arguments {
  std::vector<Literal> whole;
  std::vector<std::vector<Literal>> per_device;
};

Arguments MakeArguments(const hlo::Module& module, const Shardings& shardings, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t devices = module.config().num_partitions;
  Arguments arguments;
  arguments.per_device.resize(devices);
  size_t leaf = 0;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    std::vector<Literal> whole;
    std::vector<std::vector<Literal>> shards(devices);
    for (const Shape& shape : Leaves(parameter->shape())) {
      whole.push_back(RandomLeaf(shape, random));
      std::vector<Literal> parts = ShardAll(whole.back(), shardings[leaf++], devices, -77);
      for (int64_t d = 0; d < devices; ++d) shards[d].push_back(std::move(parts[d]));
    }
    auto next = whole.cbegin();
    arguments.whole.push_back(PackLeaves(parameter->shape(), &next));
    for (int64_t d = 0; d < devices; ++d) {
      auto part = shards[d].cbegin();
      arguments.per_device[d].push_back(PackLeaves(parameter->shape(), &part));
    }
  }
  return arguments;
}

// On one device; a program with manual computations on all it is written for, each holding everything.
absl::StatusOr<Literal> EvaluateWhole(const hlo::Module& module, const std::vector<Literal>& arguments) {
  bool manual = false;
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto* call = instruction->attr_if<hlo::CustomCallAttr>();
      manual |= call != nullptr && call->target == "SPMDFullToShardShape";
    }
  }
  if (!manual) return eval::Evaluate(module, arguments);
  const int64_t devices = module.config().num_partitions;
  GW_ASSIGN_OR_RETURN(std::vector<Literal> results,
                      eval::EvaluateSpmd(module, std::vector<std::vector<Literal>>(devices, arguments), devices));
  return std::move(results.front());
}

// The per-device program on all devices gives `expected`, part by part.
absl::Status ComparePerDevice(const hlo::Module& per_device, const Shardings& outputs, const Arguments& arguments,
                              const std::vector<Literal>& expected, double tolerance) {
  const int64_t devices = per_device.config().num_partitions;
  GW_ASSIGN_OR_RETURN(const std::vector<Literal> results,
                      eval::EvaluateSpmd(per_device, arguments.per_device, devices));
  std::vector<std::vector<Literal>> device_leaves(devices);
  for (int64_t d = 0; d < devices; ++d) UnpackLeaves(results[d], &device_leaves[d]);
  for (size_t leaf = 0; leaf < expected.size(); ++leaf) {
    if (!expected[leaf].shape().IsArray()) continue;
    std::vector<Literal> shards;
    for (int64_t d = 0; d < devices; ++d) shards.push_back(device_leaves[d][leaf]);
    bool agree = false;
    const Literal got = Assemble(shards, expected[leaf].shape(), outputs[leaf], &agree);
    if (!agree) return absl::DataLossError(absl::StrCat("output ", leaf, ": replicas differ between devices"));
    const std::string difference = Difference(expected[leaf], got, tolerance);
    if (!difference.empty()) return absl::DataLossError(absl::StrCat("output ", leaf, ": ", difference));
  }
  return absl::OkStatus();
}

absl::Status WithPrograms(const absl::Status& status, absl::string_view stage, const hlo::Module& whole,
                          const hlo::Module& per_device) {
  if (status.ok()) return status;
  return Annotate(status, absl::StrCat(stage, "\n--- whole\n", whole.ToString(), "\n--- per device\n",
                                       per_device.ToString(), "\n"));
}

}  // namespace

absl::Status CheckEquivalent(const hlo::Module& module, const CheckOptions& options) {
  std::unique_ptr<hlo::Module> annotated = module.Clone();
  if (options.propagate) {
    GW_RETURN_IF_ERROR_WITH(propagate::Propagate(*annotated, {.empty_shards = options.empty_shards}, nullptr),
                            "propagate");
  }
  GW_ASSIGN_OR_RETURN_WITH(partition::Partitioned partitioned, partition::PartitionModule(*annotated), "partition");
  hlo::Module& per_device = *partitioned.module;
  const Arguments arguments = MakeArguments(module, partitioned.parameters, options.seed);
  GW_ASSIGN_OR_RETURN_WITH(const Literal whole, EvaluateWhole(module, arguments.whole), "whole program");
  std::vector<Literal> expected;
  UnpackLeaves(whole, &expected);
  GW_RETURN_IF_ERROR(
      WithPrograms(ComparePerDevice(per_device, partitioned.outputs, arguments, expected, options.tolerance),
                   "partitioned", *annotated, per_device));
  if (!options.passes) return absl::OkStatus();
  passes::PipelineOptions verified;
  verified.verify = true;
  const std::unique_ptr<hlo::Module> before = per_device.Clone();
  GW_RETURN_IF_ERROR(
      WithPrograms(passes::PerDevicePipeline(true).Run(per_device, verified).status(), "passes", *before, per_device));
  return WithPrograms(ComparePerDevice(per_device, partitioned.outputs, arguments, expected, options.tolerance),
                      "after passes", *before, per_device);
}

}  // namespace gangway::equivalence
