// The threads that do the work of collectives and carry on the devices that waited for them.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "gangway/net/fabric.h"

namespace gangway::collective {

// A queue served by whoever brings work to it and, when that takes long, by helper threads. Resuming a device runs its
// program on the resuming thread up to its next collective, so a thread that already serves the queue never serves it
// again further down its stack: it leaves its work in the queue and returns. Thread-safe.
class Crew {
 public:
  // Work and the argument to give it, so that resuming a device needs no wrapper.
  struct Job {
    std::function<void(const absl::Status&)> run;
    absl::Status status;
  };

  explicit Crew(int helpers);
  ~Crew();  // runs what is queued first

  // How many serve at the same time, at most.
  int threads() const { return std::max(helpers_, 1); }

  // Queues the jobs, then serves the queue until it is empty, unless this thread or enough others already do so, or the
  // jobs are so long that a helper should. `spread`: wake helpers at once.
  void Run(absl::InlinedVector<Job, 8> jobs, bool spread);
  // Queues the jobs for the helpers and returns: for threads that must not be kept. Without helpers the same as Run.
  void Hand(absl::InlinedVector<Job, 8> jobs);
  // Something was sent for by `fabric`: the next thread of the crew that has nothing else to do looks out for it before
  // it sleeps. Wakes nobody.
  void SentFor(std::shared_ptr<net::Fabric> fabric);
  // For a thread that would sleep until the crew carries something on: looks out for what was sent for, unless another
  // does, and serves the queue with what came. Until `enough`, or for a while.
  void LookOut(absl::FunctionRef<bool()> enough);

 private:
  struct State;

  const int helpers_;
  const std::shared_ptr<State> state_;  // shared with the helper threads
  std::vector<std::thread> threads_;
};

}  // namespace gangway::collective
