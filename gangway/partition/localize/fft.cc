// fft with split transformed dimensions: a transform of several dimensions is one of each of them, so those that are
// whole are transformed first, then take over the axes of the others by an all-to-all.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/generic.h"
#include "gangway/partition/localize/fft_line.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Instruction;

// The array under `sharding`, then transformed along `dims`, which are whole.
struct FftStage {
  Sharding sharding;
  std::vector<int64_t> dims;
  hlo::FftType type = hlo::FftType::kFft;
};

class FftPlan {
 public:
  FftPlan(const Instruction& instruction, Context& context)
      : instruction_(instruction),
        attr_(instruction.attr<hlo::FftAttr>()),
        context_(context),
        value_(context.Value(*instruction.operand(0))),
        rank_(value_.global.rank()) {}

  // False when one step does, or nothing lets the transform be taken apart.
  bool Choose() {
    if (attr_.lengths.size() < 2 || !SameMesh(value_.sharding.mesh, context_.mesh())) return false;
    Sharding sharding = value_.sharding;
    sharding.unreduced.clear();
    std::vector<int64_t> left(attr_.lengths.size());
    std::iota(left.begin(), left.end(), rank_ - static_cast<int64_t>(left.size()));
    if (std::none_of(left.begin(), left.end(), [&](int64_t d) { return sharding.IsSplit(d); })) return false;
    shape_ = WithoutLayout(value_.global);
    while (!left.empty()) {
      std::vector<int64_t> ready = Ready(left, sharding);
      if (ready.empty()) {
        if (!MakeWhole(left, &sharding)) return false;
        continue;
      }
      AddStage(sharding, std::move(ready), &left);
    }
    cost_ += ResultCost(instruction_, 0, sharding, context_);
    return true;
  }

  double cost() const { return cost_; }

  absl::Status Emit() {
    LocalValue value = value_;
    for (const FftStage& stage : stages_) {
      GW_ASSIGN_OR_RETURN(Instruction * local, context_.Reshard(value, stage.sharding));
      value.global = Transformed(value.global, stage);
      value.local = Transform(local, stage);
      value.sharding = stage.sharding;
      value.origin = nullptr;
    }
    context_.Set(instruction_, value.local, value.sharding);
    return absl::OkStatus();
  }

 private:
  bool IsReal() const { return attr_.type == hlo::FftType::kRfft; }
  bool ToReal() const { return attr_.type == hlo::FftType::kIrfft; }

  // Dimensions that can be transformed now. The halved one of a transform from real values comes first, of one to real
  // values last.
  std::vector<int64_t> Ready(const std::vector<int64_t>& left, const Sharding& sharding) const {
    const bool halved_left = std::find(left.begin(), left.end(), rank_ - 1) != left.end();
    if (IsReal() && halved_left && sharding.IsSplit(rank_ - 1)) return {};
    std::vector<int64_t> ready;
    for (int64_t d : left) {
      if (sharding.IsSplit(d)) continue;
      if (ToReal() && d == rank_ - 1 && ready.size() + 1 < left.size()) continue;
      ready.push_back(d);
    }
    return ready;
  }

  void AddStage(const Sharding& sharding, std::vector<int64_t> dims, std::vector<int64_t>* left) {
    FftStage stage{sharding, std::move(dims)};
    const bool halved = std::find(stage.dims.begin(), stage.dims.end(), rank_ - 1) != stage.dims.end();
    const bool inverse = attr_.type == hlo::FftType::kIfft || ToReal();
    stage.type = inverse ? hlo::FftType::kIfft : hlo::FftType::kFft;
    if (halved && (IsReal() || ToReal())) stage.type = attr_.type;
    std::erase_if(*left,
                  [&](int64_t d) { return std::find(stage.dims.begin(), stage.dims.end(), d) != stage.dims.end(); });
    // Before the first stage the value itself is resharded.
    cost_ += stages_.empty() ? context_.ReshardCost(value_, sharding)
                             : context_.module().planner->Cost(stages_.back().sharding, sharding, shape_);
    shape_ = Transformed(shape_, stage);
    stages_.push_back(std::move(stage));
  }

  // Moves the axes of the dimension that has to come next to one that is whole and need not be soon.
  bool MakeWhole(const std::vector<int64_t>& left, Sharding* sharding) const {
    const bool halved_first = IsReal() && std::find(left.begin(), left.end(), rank_ - 1) != left.end();
    int64_t next = halved_first ? rank_ - 1 : left[0];
    for (int64_t d : left) {
      if (!halved_first && sharding->IsSplit(d) && !(ToReal() && d == rank_ - 1)) next = d;
    }
    if (!sharding->IsSplit(next)) return false;
    const AxisList axes = sharding->dims[next].axes;
    const int64_t shards = ProductOf(axes);
    // Dimensions that are done first, those at the front first; shards that are partly padding only if there is no
    // other.
    for (const bool even : {true, false}) {
      for (const bool done : {true, false}) {
        for (int64_t d = 0; d < rank_; ++d) {
          const bool is_left = std::find(left.begin(), left.end(), d) != left.end();
          const bool fits = even ? shape_.dim(d) % shards == 0 : shape_.dim(d) >= shards;
          if (d == next || sharding->IsSplit(d) || is_left == done || !fits) continue;
          sharding->dims[next].axes.clear();
          sharding->dims[d].axes = axes;
          return true;
        }
      }
    }
    return false;
  }

  // The whole shape after a stage.
  Shape Transformed(Shape shape, const FftStage& stage) const {
    const int64_t length = attr_.lengths.back();
    if (stage.type == hlo::FftType::kRfft) {
      shape = WithDType(shape, instruction_.shape().dtype());
      shape.set_dim(rank_ - 1, length / 2 + 1);
    } else if (stage.type == hlo::FftType::kIrfft) {
      shape = WithDType(shape, instruction_.shape().dtype());
      shape.set_dim(rank_ - 1, length);
    }
    return shape;
  }

  // The operation transforms the last dimensions; others are brought there and back.
  Instruction* Transform(Instruction* x, const FftStage& stage) {
    hlo::Builder& builder = context_.builder();
    DimVector order;
    for (int64_t d = 0; d < rank_; ++d) {
      if (std::find(stage.dims.begin(), stage.dims.end(), d) == stage.dims.end()) order.push_back(d);
    }
    hlo::FftAttr attr;
    attr.type = stage.type;
    for (int64_t d : stage.dims) {
      order.push_back(d);
      attr.lengths.push_back(attr_.lengths[d - (rank_ - static_cast<int64_t>(attr_.lengths.size()))]);
    }
    const bool in_place = std::is_sorted(order.begin(), order.end());
    if (!in_place) x = builder.Transpose(x, order);
    x = builder.Add(hlo::Opcode::kFft, {x}, attr);
    if (in_place) return x;
    DimVector back(rank_);
    for (int64_t i = 0; i < rank_; ++i) back[order[i]] = i;
    return builder.Transpose(x, back);
  }

  const Instruction& instruction_;
  const hlo::FftAttr& attr_;
  Context& context_;
  const LocalValue value_;
  const int64_t rank_;
  std::vector<FftStage> stages_;
  Shape shape_;  // whole, after the stages so far
  double cost_ = 0;
};

}  // namespace

absl::Status LocalizeFft(const Instruction& instruction, Context& context) {
  FftPlan plan(instruction, context);
  LineFft line(instruction, context);
  const bool by_stages = plan.Choose(), by_steps = line.Choose();
  if (!by_stages && !by_steps) return LocalizeByRule(instruction, context);
  GW_ASSIGN_OR_RETURN(const rules::OpRule rule, rules::RuleFor(instruction));
  GW_ASSIGN_OR_RETURN(const OpPlan by_rule, PlanOp(instruction, rule, OptionsFor(instruction), context));
  if (by_rule.cost - by_rule.work <= (by_stages ? plan.cost() : line.Cost()))
    return LocalizeByChoice(instruction, context);
  return by_stages ? plan.Emit() : line.Emit();
}

}  // namespace gangway::partition
