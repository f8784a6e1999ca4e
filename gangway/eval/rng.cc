// rng-bit-generator, rng, rng-get-and-update-state.
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "gangway/eval/op_table.h"
#include "gangway/eval/random_bits.h"
#include "gangway/eval/wide.h"

namespace gangway::eval {
namespace {

using hlo::Opcode;

// State words: key, counter[, high half of the counter]. A state of two words keeps the low half of philox's only.
absl::StatusOr<Value> RngBitGenerator(const Call& call) {
  const Literal& state = call.array(0);
  const Shape& shape = call.shape().tuple()[1];
  int width = BitWidth(shape.dtype());
  int64_t words = state.shape().ElementCount();
  if (state.shape().dtype() != DType::kU64 || words < 2) {
    return absl::UnimplementedError(absl::StrCat("state of type ", state.shape().ToString()));
  }
  absl::Span<const uint64_t> in = state.values<uint64_t>();
  bool threefry = call.attr<hlo::RngBitGeneratorAttr>().algorithm == hlo::RngAlgorithm::kThreeFry;
  RandomBits random;
  if (threefry) {
    random = ThreeFryBits(in[0], in[1], shape.dims(), width);
  } else {
    // XLA reads a long state as (low, high) and a short one reversed, its key standing in for the high half.
    std::array<uint64_t, 2> counter = {in[1], words >= 3 ? in[2] : in[0]};
    random = PhiloxBits(in[0], counter, shape.ElementCount(), width);
  }
  Literal next = state;
  for (int64_t i = 1; i < words && i <= static_cast<int64_t>(random.counter.size()); ++i) {
    next.mutable_values<uint64_t>()[i] = random.counter[i - 1];
  }
  Literal bits(WithoutLayout(shape));
  for (size_t i = 0; i < random.bits.size(); ++i) {
    std::memcpy(bits.data() + i * ByteWidth(shape.dtype()), &random.bits[i], ByteWidth(shape.dtype()));
    if (width < 8) StoreInt64(shape.dtype(), static_cast<int64_t>(random.bits[i]), bits.data() + i);
  }
  return Value::Tuple({Value(std::move(next)), Value(std::move(bits))});
}

double Uniform(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }  // [0, 1)

// rng leaves the numbers open; here they depend on the instruction's id only, so that a run can be repeated and every
// device draws the same.
absl::StatusOr<Value> Rng(const Call& call) {
  const Shape& shape = call.shape();
  uint64_t key = static_cast<uint64_t>(call.instruction.id().value());
  std::vector<uint64_t> bits = PhiloxBits(key, {0, 0}, 2 * shape.ElementCount(), 64).bits;
  double a = ElementAsDouble(call.array(0).shape().dtype(), call.array(0).data());
  double b = ElementAsDouble(call.array(1).shape().dtype(), call.array(1).data());
  bool normal = call.attr<hlo::RngAttr>().distribution == hlo::RngDistribution::kNormal;
  Literal result(WithoutLayout(shape));
  int width = ByteWidth(shape.dtype());
  for (int64_t i = 0; i < shape.ElementCount(); ++i) {
    double u = Uniform(bits[2 * i]), v = Uniform(bits[2 * i + 1]);
    double value = a + u * (b - a);
    if (normal) value = a + b * std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
    StoreDouble(shape.dtype(), IsInteger(shape.dtype()) ? std::floor(value) : value, result.data() + i * width);
  }
  return Value(std::move(result));
}

absl::StatusOr<PerDevice> RngGetAndUpdateState(const LockstepCall& call) {
  if (call.instruction.shape().ByteSize() != 16) return absl::InvalidArgumentError("the state is no u64[2]");
  PerDevice results;
  for (int64_t device : call.devices) {
    auto& [low, high] = call.interpreter.rng_state(device);
    uint64_t words[2] = {low, high};
    results.emplace_back(Literal::FromSpan<uint64_t>(DType::kU64, call.instruction.shape().dims(), words));
    uint64_t delta = static_cast<uint64_t>(call.instruction.attr<hlo::RngStateAttr>().delta);
    low += delta;
    if (low < delta) ++high;
  }
  return results;
}

}  // namespace

void AddRng(OpTable* table) {
  table->Set(Opcode::kRngBitGenerator, RngBitGenerator);
  table->Set(Opcode::kRng, Rng);
  table->SetLockstep(Opcode::kRngGetAndUpdateState, RngGetAndUpdateState);
}

}  // namespace gangway::eval
