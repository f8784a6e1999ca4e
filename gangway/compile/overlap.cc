#include "gangway/compile/overlap.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/compile/start_done.h"
#include "gangway/cost/collective_bytes.h"
#include "gangway/cost/collective_time.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/cost/timeline.h"
#include "gangway/hlo/halves.h"

namespace gangway::compile {
namespace {

using hlo::Computation;
using hlo::Instruction;

// How many instructions beyond the first that waits may be drawn forward: what lies ready takes memory.
constexpr int64_t kWindows[] = {std::numeric_limits<int64_t>::max() / 2, 1024, 256, 64, 16};

// A device that takes the first operation that can run, among those of a window, and starts collectives when the links
// are about to be free.
class ListScheduler {
 public:
  ListScheduler(const Computation& computation, const cost::Machine& machine, int64_t window)
      : num_devices_(computation.module()->config().num_partitions * computation.module()->config().num_replicas),
        machine_(machine),
        window_(window) {
    for (const auto& i : computation.instructions()) {
      place_[i.get()] = static_cast<int64_t>(program_.size());
      program_.push_back(i.get());
      std::vector<Instruction*> before = i->operands();
      before.insert(before.end(), i->control_predecessors().begin(), i->control_predecessors().end());
      const absl::flat_hash_set<Instruction*> distinct(before.begin(), before.end());
      for (Instruction* earlier : distinct) after_[earlier].push_back(i.get());
      missing_.push_back(static_cast<int64_t>(distinct.size()));
      seconds_.push_back(cost::SecondsOf(*i, num_devices_, machine_));
    }
    for (size_t p = 0; p < program_.size(); ++p) {
      if (missing_[p] == 0) Enqueue(static_cast<int64_t>(p));
    }
  }

  std::vector<Instruction*> Order() {
    while (order_.size() < program_.size()) {
      if (!TakeDone() && !TakeStart() && !TakeWork()) Idle();
    }
    return std::move(order_);
  }

 private:
  void Enqueue(int64_t place) {
    const Instruction& i = *program_[place];
    (hlo::IsDone(i.opcode())                             ? dones_
     : cost::CollectiveOf(i) && hlo::IsStart(i.opcode()) ? starts_
                                                         : work_)
        .insert(place);
  }

  void Take(int64_t place, std::set<int64_t>* from) {
    from->erase(place);
    Instruction* taken = program_[place];
    order_.push_back(taken);
    missing_[place] = -1;
    while (first_ < static_cast<int64_t>(program_.size()) && missing_[first_] < 0) ++first_;
    for (Instruction* user : after_[taken]) {
      if (--missing_[place_.at(user)] == 0) Enqueue(place_.at(user));
    }
  }

  bool InWindow(int64_t place) const { return place <= first_ + window_; }

  bool TakeDone() {
    for (int64_t place : dones_) {
      if (LandsAt(place) > now_) continue;
      Take(place, &dones_);
      return true;
    }
    return false;
  }

  // One that would only queue behind others can wait for the next operation.
  bool TakeStart() {
    const double horizon = now_ + (work_.empty() || !InWindow(*work_.begin()) ? 0 : seconds_[*work_.begin()]);
    if (starts_.empty() || !InWindow(*starts_.begin()) || links_free_ > horizon) return false;
    const int64_t place = *starts_.begin();
    const double seconds = cost::TimeOf(*cost::CollectiveOf(*program_[place]), num_devices_, machine_).total();
    links_free_ = std::max(links_free_, now_) + seconds;
    lands_[program_[place]] = links_free_;
    Take(place, &starts_);
    return true;
  }

  bool TakeWork() {
    if (work_.empty() || !InWindow(*work_.begin())) return false;
    const int64_t place = *work_.begin();
    now_ += seconds_[place];
    Take(place, &work_);
    return true;
  }

  // Until the first thing happens: the operation that all wait for is a start or awaits one.
  void Idle() {
    double next = std::numeric_limits<double>::infinity();
    for (int64_t place : dones_) next = std::min(next, LandsAt(place));
    if (!starts_.empty() && InWindow(*starts_.begin())) next = std::min(next, links_free_);
    now_ = std::max(now_, next);
  }

  // What awaits no collective, and one that was not split from this program's, is over at once.
  double LandsAt(int64_t done) const {
    const auto it = lands_.find(program_[done]->operand(0));
    return it == lands_.end() ? 0 : it->second;
  }

  const int64_t num_devices_;
  const cost::Machine& machine_;
  const int64_t window_;
  std::vector<Instruction*> program_;
  absl::flat_hash_map<const Instruction*, int64_t> place_;
  absl::flat_hash_map<const Instruction*, std::vector<Instruction*>> after_;
  std::vector<double> seconds_;              // each holds the device up
  std::vector<int64_t> missing_;             // operands to come; -1: taken
  std::set<int64_t> work_, starts_, dones_;  // ready
  absl::flat_hash_map<const Instruction*, double> lands_;
  double now_ = 0, links_free_ = 0;
  int64_t first_ = 0;  // not taken
  std::vector<Instruction*> order_;
};

// Callees before callers: how long a loop takes is known by then.
void Schedule(hlo::Module* module, const cost::Machine& machine, int64_t window) {
  for (Computation* computation : module->PostOrder()) {
    computation->Reorder(ListScheduler(*computation, machine, window).Order());
  }
  module->config().is_scheduled = true;
}

}  // namespace

std::unique_ptr<hlo::Module> OverlapCollectives(const hlo::Module& module, const cost::Machine& machine) {
  const std::unique_ptr<hlo::Module> split = module.Clone();
  StartAndAwaitCollectives(split.get());
  const double memory = std::max(machine.device.memory_bytes, static_cast<double>(cost::PeakMemoryOf(module).total()));
  double seconds = cost::TimelineOf(module, machine).seconds;
  std::unique_ptr<hlo::Module> best;
  for (int64_t window : kWindows) {
    std::unique_ptr<hlo::Module> tried = split->Clone();
    Schedule(tried.get(), machine, window);
    if (static_cast<double>(cost::PeakMemoryOf(*tried).total()) > memory) continue;
    const double tried_seconds = cost::TimelineOf(*tried, machine).seconds;
    if (tried_seconds >= seconds) continue;
    seconds = tried_seconds;
    best = std::move(tried);
  }
  return best;
}

}  // namespace gangway::compile
