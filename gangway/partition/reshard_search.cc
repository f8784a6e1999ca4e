#include "gangway/partition/reshard_search.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <string>

#include "absl/container/flat_hash_set.h"

namespace gangway::partition {
namespace {

// Ways of up to so many axes are looked at until the cheapest is found, up to so many states.
constexpr size_t kMaxAxes = 4, kMaxExpansions = 400;
constexpr size_t kBeam = 16;        // kept of the states that are as many moves away, where there are more
constexpr int64_t kMaxPieces = 16;  // permutes one exchange may become
constexpr double kLocalStep = 1;    // bytes; prefers fewer local steps

uint64_t Bit(int digit) { return uint64_t{1} << digit; }

struct Node {
  Holders holders;
  uint32_t pending = 0;  // atoms with partial sums still to be resolved
  StepKind run = StepKind::kSlice;
  int64_t run_size = 0;  // product of digits the run has moved; 0 before the first step
  uint64_t touched = 0;  // digits the run has moved
  bool starts_run = false;
  int parent = -1;
  double cost = 0;
};

class Search {
 public:
  explicit Search(const StepProblem& problem) : problem_(problem) {}

  std::vector<ReshardStep> Run() {
    std::optional<int> goal;
    if (problem_.atoms.size() <= kMaxAxes) goal = Cheapest();
    if (!goal) goal = CheapestKept();
    return goal ? Extract(*goal) : GatherAndSlice();
  }

 private:
  void Start() {
    nodes_.clear();
    done_.clear();
    queue_ = {};
    Node start;
    start.holders = problem_.from;
    start.pending = problem_.pending;
    Push(std::move(start));
  }

  bool IsGoal(int index) const { return nodes_[index].holders == problem_.to && nodes_[index].pending == 0; }

  // The end of the cheapest way; nothing where it takes too long to find.
  std::optional<int> Cheapest() {
    Start();
    while (!queue_.empty()) {
      const int index = queue_.top().second;
      queue_.pop();
      if (!done_.insert(KeyOf(nodes_[index])).second) continue;
      if (IsGoal(index)) return index;
      if (done_.size() > kMaxExpansions) break;
      Expand(index);
    }
    return std::nullopt;
  }

  // The end of the cheapest of the ways that look best move after move.
  std::optional<int> CheapestKept() {
    Start();
    std::optional<int> goal;
    while (!queue_.empty()) {
      std::vector<std::pair<double, int>> layer;
      for (; !queue_.empty(); queue_.pop()) {
        const auto [cost, index] = queue_.top();
        if (goal && cost >= nodes_[*goal].cost) continue;
        if (!done_.insert(KeyOf(nodes_[index])).second) continue;
        if (IsGoal(index)) {
          goal = index;
        } else {
          layer.emplace_back(cost + CostAhead(nodes_[index]), index);
        }
      }
      std::sort(layer.begin(), layer.end());
      layer.resize(std::min(layer.size(), kBeam));
      for (const auto& [cost, index] : layer) Expand(index);
    }
    return goal;
  }

  // About what it costs from the state on: sums added up, wrong axes moved, what is too much gathered.
  double CostAhead(const Node& node) const {
    const double tile = TileBytes(node.holders);
    double cost = std::max(0.0, TileBytes(problem_.to) - tile);
    for (size_t a = 0; a < problem_.atoms.size(); ++a) {
      if (!(node.pending >> a & 1)) continue;
      const bool scatters = std::find(problem_.to.begin(), problem_.to.end(), static_cast<int>(a)) != problem_.to.end();
      cost += BytesOf(scatters ? StepKind::kReduceScatter : StepKind::kAllReduce, tile,
                      static_cast<double>(SizeOf(static_cast<int>(a))));
    }
    for (size_t i = 0; i < node.holders.size(); ++i) {
      if (node.holders[i] == problem_.to[i]) continue;
      cost += kBytesPerCollective + (node.holders[i] == kLocal || problem_.to[i] == kLocal ? 0 : tile / 2);
    }
    return cost;
  }

  static std::string KeyOf(const Node& node) {
    std::string key(node.holders.begin(), node.holders.end());
    key.append(reinterpret_cast<const char*>(&node.pending), sizeof(node.pending));
    key.push_back(static_cast<char>(node.run));
    key.append(reinterpret_cast<const char*>(&node.run_size), sizeof(node.run_size));
    return key;
  }

  void Push(Node node) {
    queue_.push({node.cost, static_cast<int>(nodes_.size())});
    nodes_.push_back(std::move(node));
  }

  int64_t SizeOf(int atom) const { return problem_.atoms[atom]; }

  double TileBytes(const Holders& holders) const {
    double bytes = problem_.bytes;
    for (size_t i = 0; i < holders.size(); ++i) {
      if (holders[i] != kLocal) bytes /= static_cast<double>(problem_.digits[i]);
    }
    return bytes;
  }

  // Adds the state after a move of `kind` over `size` values of a digit.
  void Move(int from, Holders holders, uint32_t pending, StepKind kind, int64_t size, uint64_t touched) {
    const Node& node = nodes_[from];
    Node next;
    next.holders = std::move(holders);
    next.pending = pending;
    next.parent = from;
    std::optional<double> delta = JoinRun(node, kind, size, touched, &next);
    if (!delta) delta = StartRun(node, kind, size, touched, &next);
    if (next.run_size > kMaxPieces && next.run == StepKind::kExchange) return;
    next.cost = node.cost + *delta;
    if (done_.contains(KeyOf(next))) return;
    Push(std::move(next));
  }

  // What it costs more where the running collective can do the move as well; nothing where it cannot.
  std::optional<double> JoinRun(const Node& node, StepKind kind, int64_t size, uint64_t touched, Node* next) const {
    if (node.run_size == 0) return std::nullopt;
    const double tile = TileBytes(node.holders);
    const double q = static_cast<double>(size), run = static_cast<double>(node.run_size);
    const bool same = node.run == kind;
    next->run = kind;
    next->run_size = node.run_size * size;
    next->touched = touched;
    if (kind == StepKind::kAllToAll && same && (node.touched & touched) == 0) {
      next->touched |= node.touched;
      return tile * (1 / run - 1 / (run * q));
    }
    if (kind == StepKind::kPermute && same) {
      next->run_size = 1;
      next->touched = 0;
      return kLocalStep;
    }
    const bool moves = kind == StepKind::kAllToAll || kind == StepKind::kPermute;
    const bool ran_moves =
        node.run == StepKind::kAllToAll || node.run == StepKind::kPermute || node.run == StepKind::kExchange;
    if (moves && ran_moves && !(same && kind == StepKind::kAllToAll)) return JoinExchange(node, kind, size, next);
    if (moves || !same) return std::nullopt;
    if (kind == StepKind::kAllReduce) return 2 * tile * (1 / run - 1 / (run * q));
    return BytesOf(kind, tile, q);
  }

  // An all-to-all and a permute in one: a permute for each piece of the tile.
  double JoinExchange(const Node& node, StepKind kind, int64_t size, Node* next) const {
    const double run = static_cast<double>(node.run_size);
    const int64_t factor = kind == StepKind::kAllToAll ? size : 1;
    next->run = StepKind::kExchange;
    next->run_size = node.run_size * factor;
    next->touched = 0;
    double delta = kBytesPerCollective * run * static_cast<double>(factor - 1) + kLocalStep;
    if (node.run == StepKind::kAllToAll) delta += TileBytes(node.holders) / run + kBytesPerCollective * (run - 1);
    return delta;
  }

  double StartRun(const Node& node, StepKind kind, int64_t size, uint64_t touched, Node* next) const {
    next->run = kind;
    next->run_size = kind == StepKind::kPermute ? 1 : size;
    next->touched = touched;
    next->starts_run = true;
    const double bytes = BytesOf(kind, TileBytes(node.holders), static_cast<double>(size));
    return kind == StepKind::kSlice ? bytes : bytes + kBytesPerCollective;
  }

  // Received in one move of a tile over `q` devices.
  static double BytesOf(StepKind kind, double tile, double q) {
    switch (kind) {
      case StepKind::kAllGather:
        return tile * (q - 1);
      case StepKind::kAllToAll:
      case StepKind::kReduceScatter:
        return tile * (1 - 1 / q);
      case StepKind::kPermute:
        return tile;
      case StepKind::kAllReduce:
        return 2 * tile * (1 - 1 / q);
      default:
        return kLocalStep;
    }
  }

  bool IsFree(const Node& node, int atom) const {
    if (node.pending >> atom & 1) return false;
    return std::find(node.holders.begin(), node.holders.end(), atom) == node.holders.end();
  }

  void Expand(int index) {
    const Holders holders = nodes_[index].holders;
    const uint32_t pending = nodes_[index].pending;
    const int digits = static_cast<int>(holders.size());
    for (int e = 0; e < digits; ++e) {
      if (holders[e] == kLocal && problem_.to[e] != kLocal) Fill(index, holders, pending, e);
    }
    for (int d = 0; d < digits; ++d) {
      if (holders[d] == kLocal || holders[d] == problem_.to[d]) continue;
      Holders next = holders;
      next[d] = kLocal;
      Move(index, std::move(next), pending, StepKind::kAllGather, problem_.digits[d], Bit(d));
      Swap(index, holders, pending, d);
    }
    for (size_t a = 0; a < problem_.atoms.size(); ++a) {
      if (pending >> a & 1) {
        Move(index, holders, pending & ~(1u << a), StepKind::kAllReduce, SizeOf(static_cast<int>(a)), 0);
      }
    }
  }

  // Ways to split local digit e: slice by a free axis, all-to-all from another digit, reduce-scatter.
  void Fill(int index, const Holders& holders, uint32_t pending, int e) {
    const int64_t size = problem_.digits[e];
    for (int a = 0; a < static_cast<int>(problem_.atoms.size()); ++a) {
      if (SizeOf(a) != size) continue;
      Holders next = holders;
      next[e] = static_cast<int8_t>(a);
      if (pending >> a & 1) {
        Move(index, next, pending & ~(1u << a), StepKind::kReduceScatter, size, Bit(e));
      } else if (IsFree(nodes_[index], a)) {
        Move(index, next, pending, StepKind::kSlice, size, Bit(e));
      }
    }
    for (int d = 0; d < static_cast<int>(holders.size()); ++d) {
      if (holders[d] == kLocal || holders[d] == problem_.to[d] || problem_.digits[d] != size) continue;
      Holders next = holders;
      next[e] = next[d];
      next[d] = kLocal;
      Move(index, std::move(next), pending, StepKind::kAllToAll, size, Bit(d) | Bit(e));
    }
  }

  // Permutes that put the right axis on digit d.
  void Swap(int index, const Holders& holders, uint32_t pending, int d) {
    const int8_t wanted = problem_.to[d];
    for (int e = 0; e < static_cast<int>(holders.size()); ++e) {
      if (e == d || holders[e] == kLocal || holders[e] == problem_.to[e] || problem_.digits[e] != problem_.digits[d]) {
        continue;
      }
      if (holders[e] != wanted && problem_.to[e] != holders[d]) continue;
      Holders next = holders;
      std::swap(next[d], next[e]);
      Move(index, std::move(next), pending, StepKind::kPermute, 1, 0);
    }
    if (wanted != kLocal && IsFree(nodes_[index], wanted) && SizeOf(wanted) == problem_.digits[d]) {
      Holders next = holders;
      next[d] = wanted;
      Move(index, std::move(next), pending, StepKind::kPermute, 1, 0);
    }
  }

  std::vector<ReshardStep> Extract(int goal) const {
    std::vector<int> path;
    for (int i = goal; i != -1; i = nodes_[i].parent) path.push_back(i);
    std::reverse(path.begin(), path.end());
    std::vector<ReshardStep> steps;
    for (size_t i = 1; i < path.size(); ++i) {
      const Node& node = nodes_[path[i]];
      const Node& before = nodes_[path[i - 1]];
      if (node.starts_run || steps.empty()) steps.push_back(Step(node.run, before.holders, before.pending));
      steps.back().kind = node.run;
      steps.back().after = node.holders;
      steps.back().unreduced_after = node.pending;
    }
    for (ReshardStep& step : steps) Finish(&step);
    return steps;
  }

  ReshardStep Step(StepKind kind, const Holders& before, uint32_t pending) const {
    ReshardStep step;
    step.kind = kind;
    step.before = step.after = before;
    step.unreduced_before = step.unreduced_after = pending;
    return step;
  }

  // The exact bytes of a step that may merge several moves, and its simplest kind.
  void Finish(ReshardStep* step) const {
    const double before = TileBytes(step->before);
    const double after = TileBytes(step->after);
    int64_t joined = 1;
    for (size_t i = 0; i < step->before.size(); ++i) {
      if (step->before[i] != kLocal && step->after[i] == kLocal) joined *= problem_.digits[i];
    }
    if (step->kind == StepKind::kExchange && joined == 1) step->kind = StepKind::kPermute;
    switch (step->kind) {
      case StepKind::kAllGather:
        step->bytes = after - before;
        break;
      case StepKind::kAllToAll:
        step->bytes = before * (1 - 1 / static_cast<double>(joined));
        break;
      case StepKind::kPermute:
      case StepKind::kExchange:
        step->bytes = before;
        break;
      case StepKind::kReduceScatter:
        step->bytes = before - after;
        break;
      case StepKind::kAllReduce: {
        double group = 1;
        for (size_t a = 0; a < problem_.atoms.size(); ++a) {
          if ((step->unreduced_before & ~step->unreduced_after) >> a & 1) {
            group *= static_cast<double>(SizeOf(static_cast<int>(a)));
          }
        }
        step->bytes = 2 * before * (1 - 1 / group);
        break;
      }
      case StepKind::kSlice:
      case StepKind::kMakePartial:
      case StepKind::kSpread:
      case StepKind::kMove:
        break;
    }
  }

  // What always works: add up, gather the digits that are wrong, slice what is wanted.
  std::vector<ReshardStep> GatherAndSlice() const {
    std::vector<ReshardStep> steps;
    Holders holders = problem_.from;
    if (problem_.pending != 0) {
      ReshardStep reduce = Step(StepKind::kAllReduce, holders, problem_.pending);
      reduce.unreduced_after = 0;
      steps.push_back(std::move(reduce));
    }
    ReshardStep gather = Step(StepKind::kAllGather, holders, 0);
    for (size_t i = 0; i < holders.size(); ++i) {
      if (holders[i] != problem_.to[i]) holders[i] = kLocal;
    }
    gather.after = holders;
    if (gather.after != gather.before) steps.push_back(gather);
    ReshardStep slice = Step(StepKind::kSlice, holders, 0);
    slice.after = problem_.to;
    if (slice.after != slice.before) steps.push_back(slice);
    for (ReshardStep& step : steps) Finish(&step);
    return steps;
  }

  const StepProblem& problem_;
  std::vector<Node> nodes_;
  absl::flat_hash_set<std::string> done_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> queue_;
};

// A view without what stays as it is.
struct Reduced {
  StepProblem problem;
  std::vector<int> digits, atoms;  // of the view, for each of the problem
};

// Gives atoms numbers in the order in which they are met, so that problems that differ by names alone are one.
void NumberAtoms(const DigitView& view, Reduced* reduced) {
  StepProblem& problem = reduced->problem;
  std::vector<int8_t> numbers(view.atoms.size(), kLocal);
  const auto number_of = [&](size_t atom) {
    if (numbers[atom] == kLocal) {
      numbers[atom] = static_cast<int8_t>(reduced->atoms.size());
      reduced->atoms.push_back(static_cast<int>(atom));
      problem.atoms.push_back(view.atoms[atom].size);
    }
    return numbers[atom];
  };
  for (Holders* holders : {&problem.from, &problem.to}) {
    for (int8_t& holder : *holders) {
      if (holder != kLocal) holder = number_of(static_cast<size_t>(holder));
    }
  }
  const uint32_t pending = view.unreduced_from & ~view.unreduced_to;
  for (size_t a = 0; a < view.atoms.size(); ++a) {
    if (pending >> a & 1) problem.pending |= uint32_t{1} << number_of(a);
  }
}

Reduced Reduce(const DigitView& view, int element_bytes) {
  Reduced reduced;
  StepProblem& problem = reduced.problem;
  problem.bytes = element_bytes;
  for (int64_t extent : view.padded) problem.bytes *= static_cast<double>(extent);
  for (size_t d = 0; d < view.digits.size(); ++d) {
    if (view.from[d] == view.to[d]) {
      problem.bytes /= static_cast<double>(view.digits[d].size);
      continue;
    }
    reduced.digits.push_back(static_cast<int>(d));
    problem.digits.push_back(view.digits[d].size);
    problem.from.push_back(view.from[d]);
    problem.to.push_back(view.to[d]);
  }
  NumberAtoms(view, &reduced);
  return reduced;
}

// A state of the problem in the view's digits and atoms.
Holders InView(const Holders& holders, const Reduced& reduced, const DigitView& view) {
  Holders whole = view.from;
  for (size_t d = 0; d < holders.size(); ++d) {
    whole[reduced.digits[d]] = holders[d] == kLocal ? kLocal : static_cast<int8_t>(reduced.atoms[holders[d]]);
  }
  return whole;
}

uint32_t InView(uint32_t pending, const Reduced& reduced, const DigitView& view) {
  uint32_t whole = view.unreduced_from & view.unreduced_to;
  for (size_t a = 0; a < reduced.atoms.size(); ++a) whole |= (pending >> a & 1) << reduced.atoms[a];
  return whole;
}

}  // namespace

std::vector<ReshardStep> StepSearch::Steps(const DigitView& view, int element_bytes) {
  const Reduced reduced = Reduce(view, element_bytes);
  auto [found, is_new] = found_.try_emplace(reduced.problem);
  if (is_new) found->second = Search(reduced.problem).Run();
  std::vector<ReshardStep> steps = found->second;
  for (ReshardStep& step : steps) {
    step.before = InView(step.before, reduced, view);
    step.after = InView(step.after, reduced, view);
    step.unreduced_before = InView(step.unreduced_before, reduced, view);
    step.unreduced_after = InView(step.unreduced_after, reduced, view);
  }
  return steps;
}

}  // namespace gangway::partition
