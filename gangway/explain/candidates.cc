#include "gangway/explain/candidates.h"

#include <algorithm>
#include <utility>

#include "gangway/rules/rule.h"

namespace gangway::explain {
namespace {

using hlo::Instruction;
using partition::Reason;
using rules::OpRule;

constexpr size_t kMost = 24;

// One dimension's axes taken from wherever they are in `sharding` and put on `dim`, in front of nothing else.
Sharding WithAxesOn(Sharding sharding, int64_t dim, const AxisList& axes) {
  for (DimSharding& of_dim : sharding.dims) RemoveOverlapping(&of_dim.axes, axes);
  RemoveOverlapping(&sharding.replicated, axes);
  AxisList& there = sharding.dims[dim].axes;
  there.insert(there.end(), axes.begin(), axes.end());
  return sharding;
}

Sharding WithoutAxes(Sharding sharding, const AxisList& axes) {
  for (DimSharding& of_dim : sharding.dims) RemoveOverlapping(&of_dim.axes, axes);
  return sharding;
}

class Collector {
 public:
  explicit Collector(const Program& program) : program_(program) {}

  // Where there is such an array of that shape.
  void Add(absl::string_view name, Sharding sharding, const Shape& shape) {
    const Instruction* instruction = program_.Find(name);
    if (instruction == nullptr || !instruction->shape().IsArray() || candidates_.size() >= kMost) return;
    if (!Shape::Compatible(instruction->shape(), shape)) return;
    sharding.unreduced.clear();
    sharding = sharding.Closed();
    if (!ValidateSharding(sharding, instruction->shape()).ok()) return;
    // As it is already: nothing to try.
    if (instruction->has_sharding() && instruction->sharding().Closed() == sharding) return;
    const bool known = std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& other) {
      return other.instruction == name && other.sharding == sharding;
    });
    if (!known) candidates_.push_back({std::string(name), std::move(sharding)});
  }
  void Add(const Instruction& instruction, Sharding sharding) {
    Add(instruction.name(), std::move(sharding), instruction.shape());
  }

  std::vector<Candidate> Take() { return std::move(candidates_); }

 private:
  const Program& program_;
  std::vector<Candidate> candidates_;
};

bool CanBeSplit(const Instruction& instruction) { return instruction.shape().IsArray() && instruction.has_sharding(); }

// The array as it is wanted, from where it is made or from where its sharding was annotated; or what is made of it left
// as the array lies.
void AddEnds(const Reason& reason, const Program& program, Collector* found) {
  found->Add(reason.value, reason.to, reason.shape);
  found->Add(reason.wanted_by, reason.from, reason.shape);
  for (const Path& path : program.PathsOf(reason.value, reason.from)) {
    for (const Place& place : path.places) found->Add(place.instruction, reason.to, reason.shape);
  }
  for (const Path& path : program.PathsOf(reason.wanted_by, reason.to)) {
    for (const Place& place : path.places) found->Add(place.instruction, reason.from, reason.shape);
  }
}

// The operation that wants the array works as the array lies: its other operands and its result are split alike.
void AddAsTheArrayLies(const Reason& reason, const Program& program, Collector* found) {
  const Instruction* wanted_by = program.Find(reason.wanted_by);
  if (wanted_by == nullptr) return;
  const absl::StatusOr<OpRule> rule = rules::RuleFor(*wanted_by);
  if (!rule.ok() || rule->form != rules::RuleForm::kFactors) return;
  for (size_t i = 0; i < rule->operands.size(); ++i) {
    if (wanted_by->operand(i)->name() != reason.value) continue;
    for (int64_t dim = 0; dim < reason.from.rank(); ++dim) {
      const AxisList& axes = reason.from.dims[dim].axes;
      const rules::DimFactors& factors = rule->operands[i][dim];
      if (axes.empty() || axes == reason.to.dims[dim].axes || factors.size() != 1) continue;
      const auto split = [&](const Instruction& other, const rules::ValueFactors& dims) {
        for (size_t d = 0; d < dims.size() && CanBeSplit(other); ++d) {
          if (dims[d] == factors) found->Add(other, WithAxesOn(other.sharding(), static_cast<int64_t>(d), axes));
        }
      };
      for (size_t j = 0; j < rule->operands.size(); ++j) {
        if (j != i) split(*wanted_by->operand(j), rule->operands[j]);
      }
      if (rule->results.size() == 1) split(*wanted_by, rule->results[0]);
    }
  }
}

// A partial sum: scattered instead of kept by everyone; or not taken over several devices in the first place.
void AddForSum(const Reason& reason, const Program& program, Collector* found) {
  const AxisList& axes = reason.from.unreduced;
  const Instruction* wanted_by = program.Find(reason.wanted_by);
  for (int64_t dim = 0; dim < reason.to.rank(); ++dim) {
    const Sharding scattered = WithAxesOn(reason.to, dim, axes);
    if (scattered.ShardCount(dim) > reason.shape.dims()[dim]) continue;
    found->Add(reason.value, scattered, reason.shape);
    found->Add(reason.wanted_by, scattered, reason.shape);
    if (wanted_by == nullptr) continue;
    for (const Instruction* operand : wanted_by->operands()) found->Add(operand->name(), scattered, reason.shape);
  }
  const Instruction* maker = program.Find(reason.value);
  if (maker == nullptr) return;
  const absl::StatusOr<OpRule> rule = rules::RuleFor(*maker);
  if (!rule.ok() || rule->form != rules::RuleForm::kFactors) return;
  for (const Instruction* operand : maker->operands()) {
    if (CanBeSplit(*operand)) found->Add(*operand, WithoutAxes(operand->sharding(), axes));
  }
}

// An operation that needs its neighbours' elements, or a sum of candidates, does not where the dimension is whole: on
// every device, or because another one is split instead.
void AddForOperation(const Reason& reason, const Program& program, Collector* found) {
  const Instruction* wanted_by = program.Find(reason.wanted_by);
  if (wanted_by == nullptr) return;
  std::vector<const Instruction*> ends(wanted_by->operands().begin(), wanted_by->operands().end());
  ends.push_back(wanted_by);
  for (const Instruction* end : ends) {
    if (!CanBeSplit(*end)) continue;
    const Sharding& sharding = end->sharding();
    for (int64_t dim = 0; dim < sharding.rank(); ++dim) {
      if (!sharding.IsSplit(dim)) continue;
      const AxisList axes = sharding.dims[dim].axes;
      for (int64_t other = 0; other < sharding.rank(); ++other) {
        const bool fits = end->shape().dims()[other] % (ProductOf(axes) * sharding.ShardCount(other)) == 0;
        if (other != dim && fits) found->Add(*end, WithAxesOn(sharding, other, axes));
      }
      found->Add(*end, WithoutAxes(sharding, axes));
    }
  }
}

}  // namespace

std::vector<Candidate> CandidatesFor(const Reason& reason, const Program& program) {
  Collector found(program);
  if (reason.is_reshard) {
    AddEnds(reason, program, &found);
    AddAsTheArrayLies(reason, program, &found);
    if (!reason.from.unreduced.empty()) AddForSum(reason, program, &found);
  } else {
    AddForOperation(reason, program, &found);
  }
  return found.Take();
}

}  // namespace gangway::explain
