#include "gangway/cost/order.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/cost/fusion.h"
#include "gangway/cost/operation_cost.h"

namespace gangway::cost {
namespace {

constexpr size_t kMaxReads = 64;  // through operations fused into one

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsGiven(const Instruction& i) { return i.opcode() == Opcode::kParameter || i.opcode() == Opcode::kConstant; }

// What takes turns: operations, their results' views and parameters, each with the others it reads through what is
// fused into it. Indices are into the computation's instructions.
class Turns {
 public:
  explicit Turns(const Computation& computation)
      : last_reader_(computation.size(), -1), reads_(computation.size()), read_by_(computation.size()) {
    for (int64_t p = 0; p < computation.size(); ++p) place_[computation.instructions()[p].get()] = p;
    for (int64_t p = 0; p < computation.size(); ++p) {
      const Instruction* i = computation.instructions()[p].get();
      instructions_.push_back(i);
      for (const Instruction* operand : i->operands()) AddReads(operand, p);
      for (const Instruction* before : i->control_predecessors()) AddReads(before, p);
      takes_turn_.push_back(IsMaterialized(*i) || IsGiven(*i) || IsAlias(i->opcode()) || reads_[p].size() > kMaxReads);
      if (!takes_turn_[p]) continue;
      for (int64_t read : reads_[p]) read_by_[read].push_back(p);
    }
  }

  int64_t size() const { return static_cast<int64_t>(reads_.size()); }
  bool TakesTurn(int64_t p) const { return takes_turn_[p]; }
  const Instruction& at(int64_t p) const { return *instructions_[p]; }
  const std::vector<int64_t>& reads(int64_t p) const { return reads_[p]; }
  const std::vector<int64_t>& read_by(int64_t p) const { return read_by_[p]; }

  // Every instruction, what is fused right before its first reader.
  Order WithFused(const std::vector<int64_t>& turns) const {
    Order order;
    std::vector<bool> done(size());
    for (int64_t p : turns) Append(p, &done, &order);
    for (int64_t p = 0; p < size(); ++p) Append(p, &done, &order);
    return order;
  }

 private:
  void AddReads(const Instruction* operand, int64_t reader) {
    const int64_t p = place_.at(operand);
    const std::vector<int64_t> through = takes_turn_[p] ? std::vector<int64_t>{p} : reads_[p];
    for (int64_t read : through) {
      if (std::exchange(last_reader_[read], reader) != reader) reads_[reader].push_back(read);
    }
  }

  void Append(int64_t p, std::vector<bool>* done, Order* order) const {
    std::vector<int64_t> open = {p};
    while (!open.empty()) {
      const int64_t next = open.back();
      const size_t before = open.size();
      if (!(*done)[next]) {
        for (const Instruction* operand : instructions_[next]->operands()) {
          if (int64_t o = place_.at(operand); !(*done)[o]) open.push_back(o);
        }
      }
      if (open.size() > before) continue;
      open.pop_back();
      if ((*done)[next]) continue;
      (*done)[next] = true;
      order->push_back(instructions_[next]);
    }
  }

  absl::flat_hash_map<const Instruction*, int64_t> place_;
  std::vector<const Instruction*> instructions_;
  std::vector<bool> takes_turn_;
  std::vector<int64_t> last_reader_;  // while reads_ are filled
  std::vector<std::vector<int64_t>> reads_, read_by_;
};

std::vector<int64_t> BreadthFirst(const Turns& turns) {
  std::vector<int64_t> order;
  std::vector<size_t> missing(turns.size());
  std::deque<int64_t> ready;
  for (int64_t p = 0; p < turns.size(); ++p) {
    if (!turns.TakesTurn(p)) continue;
    missing[p] = turns.reads(p).size();
    if (missing[p] == 0) ready.push_back(p);
  }
  for (; !ready.empty(); ready.pop_front()) {
    order.push_back(ready.front());
    for (int64_t reader : turns.read_by(ready.front())) {
      if (--missing[reader] == 0) ready.push_back(reader);
    }
  }
  return order;
}

// Readers beyond the first, and bytes, of an operation and all it needs; what is needed twice counts twice.
struct Weight {
  int64_t readers = 0, bytes = 0;
  friend bool operator<(const Weight& a, const Weight& b) {
    return std::pair(a.readers, a.bytes) < std::pair(b.readers, b.bytes);
  }
};

std::vector<Weight> WeightsOf(const Turns& turns) {
  std::vector<Weight> weights(turns.size());
  int64_t all_bytes = 0;
  for (int64_t p = 0; p < turns.size(); ++p) {
    const Instruction& i = turns.at(p);
    if (!turns.TakesTurn(p) || IsGiven(i)) continue;
    Weight& weight = weights[p];
    const int64_t own = IsAlias(i.opcode()) ? 0 : i.shape().ByteSize();
    all_bytes += own;
    weight = {std::max<int64_t>(0, static_cast<int64_t>(turns.read_by(p).size()) - 1), own};
    for (int64_t read : turns.reads(p)) {
      weight.readers += weights[read].readers;
      weight.bytes += weights[read].bytes;
    }
    weight = {std::min(weight.readers, turns.size()), std::min(weight.bytes, all_bytes)};
  }
  return weights;
}

class DepthFirst {
 public:
  explicit DepthFirst(const Turns& turns) : turns_(turns), weights_(WeightsOf(turns)), done_(turns.size()) {}

  std::vector<int64_t> Run(int64_t root) {
    Visit(root);
    for (int64_t p = 0; p < turns_.size(); ++p) {
      if (turns_.TakesTurn(p) && turns_.read_by(p).empty()) Visit(p);
    }
    return std::move(order_);
  }

 private:
  void Visit(int64_t root) {
    std::vector<int64_t> open = {root};
    while (!open.empty()) {
      const int64_t next = open.back();
      const size_t before = open.size();
      if (!done_[next]) PushReads(next, &open);
      if (open.size() > before) continue;
      open.pop_back();
      if (done_[next]) continue;
      done_[next] = true;
      order_.push_back(next);
    }
  }

  // The heaviest on top.
  void PushReads(int64_t p, std::vector<int64_t>* open) const {
    std::vector<int64_t> reads;
    for (int64_t read : turns_.reads(p)) {
      if (!done_[read]) reads.push_back(read);
    }
    std::stable_sort(reads.begin(), reads.end(), [&](int64_t a, int64_t b) { return weights_[a] < weights_[b]; });
    open->insert(open->end(), reads.begin(), reads.end());
  }

  const Turns& turns_;
  const std::vector<Weight> weights_;
  std::vector<bool> done_;
  std::vector<int64_t> order_;
};

}  // namespace

Order OrderOf(const Computation& computation, OrderKind kind) {
  if (kind == OrderKind::kAsWritten) {
    Order order;
    for (const auto& instruction : computation.instructions()) order.push_back(instruction.get());
    return order;
  }
  const Turns turns(computation);
  if (kind == OrderKind::kBreadthFirst) return turns.WithFused(BreadthFirst(turns));
  int64_t root = 0;
  while (!turns.at(root).IsRoot()) ++root;
  return turns.WithFused(DepthFirst(turns).Run(root));
}

}  // namespace gangway::cost
