#include "tests/equivalence/kept.h"

#include <cmath>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/eval/evaluate.h"
#include "gangway/hlo/verifier.h"
#include "gangway/partition/partition.h"
#include "gangway/propagate/propagate.h"
#include "tests/equivalence/random_module.h"

namespace gangway::equivalence {
namespace {

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

}  // namespace

absl::StatusOr<std::unique_ptr<hlo::Module>> RandomPerDevice(uint64_t seed) {
  std::unique_ptr<hlo::Module> module = RandomModule(seed, {});
  GW_RETURN_IF_ERROR(propagate::Propagate(*module, {}, nullptr));
  GW_ASSIGN_OR_RETURN(partition::Partitioned partitioned, partition::PartitionModule(*module));
  return std::move(partitioned.module);
}

absl::Status CheckKept(const hlo::Module& before, const hlo::Module& after, int64_t devices, uint64_t seed) {
  GW_RETURN_IF_ERROR_WITH(hlo::Verify(after), after.ToString());
  const std::vector<std::vector<Literal>> arguments = RandomArguments(before, devices, seed);
  GW_ASSIGN_OR_RETURN_WITH(const auto want, eval::EvaluateSpmd(before, arguments, devices), "before");
  GW_ASSIGN_OR_RETURN_WITH(const auto got, eval::EvaluateSpmd(after, arguments, devices), after.ToString());
  for (int64_t d = 0; d < devices; ++d) {
    if (Same(want[d], got[d])) continue;
    return absl::InternalError(
        absl::StrCat("device ", d, " differs\n--- before\n", before.ToString(), "\n--- after\n", after.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace gangway::equivalence
