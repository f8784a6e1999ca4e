// Every clean-up pass keeps what random programs compute, whole ones and partitioned ones.
#include "gangway/passes/passes.h"

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "gangway/eval/evaluate.h"
#include "gangway/hlo/verifier.h"
#include "gangway/partition/partition.h"
#include "gangway/propagate/propagate.h"
#include "gtest/gtest.h"
#include "tests/equivalence/random_module.h"

namespace gangway::equivalence {
namespace {

constexpr uint64_t kSeeds = 150;

Literal RandomLiteral(const Shape& shape, std::mt19937_64& random) {
  Literal literal(WithoutLayout(shape));
  for (Literal& element : literal.elements()) element = RandomLiteral(element.shape(), random);
  if (!shape.IsArray()) return literal;
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    StoreDouble(shape.dtype(), static_cast<double>(random() % 7) - 3, literal.data() + i * ByteWidth(shape.dtype()));
  }
  return literal;
}

// The same on all devices, so that loops and branches that depend on replicated data do not part them.
std::vector<std::vector<Literal>> RandomArguments(const hlo::Module& module, int64_t devices, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Literal> arguments;
  for (const hlo::Instruction* parameter : module.entry()->parameters()) {
    arguments.push_back(RandomLiteral(parameter->shape(), random));
  }
  return std::vector<std::vector<Literal>>(devices, arguments);
}

bool Same(const Literal& a, const Literal& b) {
  if (a.elements().size() != b.elements().size() || !Shape::Compatible(a.shape(), b.shape())) return false;
  for (size_t i = 0; i < a.elements().size(); ++i) {
    if (!Same(a.elements()[i], b.elements()[i])) return false;
  }
  DType dtype = a.shape().dtype();
  for (int64_t i = 0; i < a.shape().ElementCount(); ++i) {
    double x = ElementAsDouble(dtype, a.data() + i * ByteWidth(dtype));
    double y = ElementAsDouble(dtype, b.data() + i * ByteWidth(dtype));
    if (x != y && !(std::isnan(x) && std::isnan(y)) && std::fabs(x - y) > 1e-5 * std::max(1.0, std::fabs(x)))
      return false;
  }
  return true;
}

// Runs the pass on a copy, and all passes in a row when `pass` is null.
void CheckKept(const hlo::Module& module, const passes::Pass* pass, int64_t devices, uint64_t seed) {
  std::unique_ptr<hlo::Module> after = module.Clone();
  for (const passes::Pass& each : passes::AllPasses()) {
    if (pass != nullptr && pass->name != each.name) continue;
    ASSERT_TRUE(each.run(*after).ok()) << each.name;
  }
  std::string name(pass == nullptr ? "all passes" : pass->name);
  absl::Status sound = hlo::Verify(*after);
  ASSERT_TRUE(sound.ok()) << name << ", seed " << seed << ": " << sound << "\n" << after->ToString();
  std::vector<std::vector<Literal>> arguments = RandomArguments(module, devices, seed);
  auto want = eval::EvaluateSpmd(module, arguments, devices), got = eval::EvaluateSpmd(*after, arguments, devices);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << name << ", seed " << seed << ": " << got.status() << "\n" << after->ToString();
  for (int64_t d = 0; d < devices; ++d) {
    ASSERT_TRUE(Same((*want)[d], (*got)[d])) << name << ", seed " << seed << ", device " << d << "\n--- before\n"
                                             << module.ToString() << "\n--- after\n"
                                             << after->ToString();
  }
}

TEST(Passes, KeepWhatWholeProgramsCompute) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomOptions options;
    options.manual_regions = false;
    std::unique_ptr<hlo::Module> module = RandomModule(seed, options);
    for (const passes::Pass& pass : passes::AllPasses()) CheckKept(*module, &pass, 1, seed);
    CheckKept(*module, nullptr, 1, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Passes, KeepWhatPartitionedProgramsCompute) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::unique_ptr<hlo::Module> module = RandomModule(seed, {});
    ASSERT_TRUE(propagate::Propagate(*module, {}, nullptr).ok());
    absl::StatusOr<partition::Partitioned> partitioned = partition::PartitionModule(*module);
    ASSERT_TRUE(partitioned.ok()) << partitioned.status();
    int64_t devices = module->config().num_partitions;
    for (const passes::Pass& pass : passes::AllPasses()) CheckKept(*partitioned->module, &pass, devices, seed);
    CheckKept(*partitioned->module, nullptr, devices, seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace gangway::equivalence
