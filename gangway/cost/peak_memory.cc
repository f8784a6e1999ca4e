#include "gangway/cost/peak_memory.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/cost/fusion.h"
#include "gangway/cost/operation_cost.h"
#include "gangway/hlo/halves.h"

namespace gangway::cost {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr size_t kMaxFused = 64;  // operations looked through
// Copies that a compiler adds are not seen here. More of them meet in an order that is fuller all the time.
constexpr double kMeanWeight = 0.3;
constexpr double kWorthOrdering = 0.96;  // the model is off by some percent

// Writes into its first operand's memory.
bool UpdatesInPlace(const Instruction& i) {
  return i.opcode() == Opcode::kDynamicUpdateSlice || i.opcode() == Opcode::kScatter || i.opcode() == Opcode::kWhile;
}

// An element of the state of a loop, whose memory an update may write into.
bool IsStateElement(const Instruction& i) {
  return i.opcode() == Opcode::kGetTupleElement && i.operand(0)->opcode() == Opcode::kParameter;
}

// Computations whose memory is taken while the instruction runs.
std::vector<Computation*> CalledInPlace(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kAsyncStart:
      return i.called();
    default:
      return {};
  }
}

// Bytes an operation allocates: what was started also names its operands, whose memory stays where it is.
int64_t OwnBytes(const Instruction& i) {
  const bool names_operands = hlo::IsStart(i.opcode()) && i.opcode() != Opcode::kAllReduceStart;
  return (names_operands && i.shape().IsTuple() && i.shape().tuple().size() > 1 ? i.shape().tuple()[1] : i.shape())
      .ByteSize();
}

// Where in the order each value is read last: by an operation that is no view and not fused into its readers; the
// computation's size for what its result holds.
Places LastUses(const Order& order) {
  Places place, last_use;
  // What was started reads its operands until it is done.
  const auto reads_until = [&](const Instruction* reader) {
    int64_t until = place.at(reader);
    if (!hlo::IsStart(reader->opcode())) return until;
    for (const Instruction* done : reader->users()) until = std::max(until, place.at(done));
    return until;
  };
  int64_t size = static_cast<int64_t>(order.size());
  for (int64_t p = 0; p < size; ++p) place[order[p]] = p;
  for (int64_t p = size - 1; p >= 0; --p) {
    const Instruction* i = order[p];
    int64_t last = i->IsRoot() ? size : p;
    for (const Instruction* user : i->users()) {
      last = std::max(last, IsMaterialized(*user) ? reads_until(user) : last_use.at(user));
    }
    last_use[i] = last;
  }
  return last_use;
}

// Bytes of what a computation allocates, its result included.
struct Fill {
  int64_t peak = 0;
  double mean = 0;  // over the operations that take memory

  void Join(const Fill& other) { *this = {std::max(peak, other.peak), std::max(mean, other.mean)}; }
};

class Lives {
 public:
  explicit Lives(OrderKind order) : order_(order) {}

  Fill FillOf(const Computation& computation) {
    if (auto it = done_.find(&computation); it != done_.end()) return it->second;
    const Order order = OrderOf(computation, order_);
    const Fill fill = Walk(order, LastUses(order), nullptr);
    done_[&computation] = fill;
    return fill;
  }

  // `fullest` gets the place of the peak when it is not null.
  Fill Walk(const Order& order, const Places& last_use, int64_t* fullest) {
    Places held;  // bytes of live values
    std::vector<std::vector<const Instruction*>> ends(order.size() + 1);
    int64_t live = 0, peak = 0, steps = 0;
    double sum = 0;
    for (int64_t p = 0; p < static_cast<int64_t>(order.size()); ++p) {
      const Instruction* i = order[p];
      Fill inner;
      for (const Computation* called : CalledInPlace(*i)) inner.Join(FillOf(*called));
      if (IsMaterialized(*i)) {
        if (const Instruction* donor = DonorOf(*i, p, last_use)) {
          int64_t bytes = std::exchange(held.at(donor), 0);  // the memory changes hands
          held[i] = bytes;
        } else {
          // A loop works in the memory of the state it starts from.
          held[i] = i->opcode() == Opcode::kWhile || UpdatesState(*i, p, last_use) ? 0 : OwnBytes(*i);
          live += held[i];
        }
        ends[last_use.at(i)].push_back(i);
        sum += static_cast<double>(live) + inner.mean;
        ++steps;
      }
      if (live + inner.peak > peak) {
        peak = live + inner.peak;
        if (fullest != nullptr) *fullest = p;
      }
      for (const Instruction* ended : ends[p]) live -= held[ended];
    }
    return {peak, steps == 0 ? 0 : sum / static_cast<double>(steps)};
  }

 private:
  static bool UpdatesState(const Instruction& i, int64_t p, const Places& last_use) {
    return UpdatesInPlace(i) && IsStateElement(*i.operand(0)) && last_use.at(i.operand(0)) == p;
  }

  // A value of the same size that ends here, whose memory the instruction may write its result into: an operand, or one
  // that an operation fused into it reads element by element.
  static const Instruction* DonorOf(const Instruction& i, int64_t p, const Places& last_use) {
    if (!UpdatesInPlace(i) && !hlo::IsElementwise(i.opcode())) return nullptr;
    std::vector<const Instruction*> readers = {&i};
    for (size_t next = 0; next < readers.size() && next < kMaxFused; ++next) {
      for (const Instruction* operand : readers[next]->operands()) {
        if (operand->shape().ByteSize() != i.shape().ByteSize()) continue;
        if (!IsMaterialized(*operand)) {
          if (hlo::IsElementwise(operand->opcode())) readers.push_back(operand);
        } else if (last_use.at(operand) == p) {
          return operand;
        }
      }
    }
    return nullptr;
  }

  const OrderKind order_;
  absl::flat_hash_map<const Computation*, Fill> done_;
};

const Shape* LeafAt(const Shape& shape, const DimVector& index) {
  const Shape* leaf = &shape;
  for (int64_t i : index) {
    if (!leaf->IsTuple() || i < 0 || i >= static_cast<int64_t>(leaf->tuple().size())) return nullptr;
    leaf = &leaf->tuple()[i];
  }
  return leaf;
}

}  // namespace

PeakMemory PeakMemoryOf(const hlo::Module& module, OrderKind order) {
  PeakMemory memory;
  const Computation* entry = module.entry();
  if (entry == nullptr) return memory;
  for (const Instruction* parameter : entry->parameters()) memory.argument_bytes += parameter->shape().ByteSize();
  int64_t results = entry->root()->shape().ByteSize(), donated = 0;
  for (const hlo::InputOutputAlias& alias : module.config().aliases) {
    const Shape* leaf = LeafAt(entry->root()->shape(), alias.output_index);
    if (leaf != nullptr) donated += leaf->ByteSize();
  }
  memory.output_bytes = std::max<int64_t>(0, results - donated);
  // The walk ends with the results live; they are counted above.
  memory.temporary_bytes = std::max<int64_t>(0, Lives(order).FillOf(*entry).peak - results);
  return memory;
}

OrderKind LeanerOrder(const hlo::Module& module) {
  if (module.entry() == nullptr) return OrderKind::kBreadthFirst;
  double arguments = 0;
  for (const Instruction* parameter : module.entry()->parameters())
    arguments += static_cast<double>(parameter->shape().ByteSize());
  const auto weight = [&](OrderKind order) {
    const Fill fill = Lives(order).FillOf(*module.entry());
    return arguments + static_cast<double>(fill.peak) + kMeanWeight * fill.mean;
  };
  const bool deep = weight(OrderKind::kDepthFirst) < kWorthOrdering * weight(OrderKind::kBreadthFirst);
  return deep ? OrderKind::kDepthFirst : OrderKind::kBreadthFirst;
}

FullestMoment FullestMomentOf(const Computation& computation) {
  FullestMoment moment;
  const Order order = OrderOf(computation, OrderKind::kAsWritten);
  moment.last_use = LastUses(order);
  Lives(OrderKind::kAsWritten).Walk(order, moment.last_use, &moment.place);
  for (int64_t p = 0; p <= moment.place; ++p) {
    const Instruction* i = computation.instructions()[p].get();
    if (IsMaterialized(*i) && moment.last_use.at(i) >= moment.place) moment.held.push_back(i);
  }
  return moment;
}

}  // namespace gangway::cost
