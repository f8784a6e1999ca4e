// The meeting point of the devices that run one launch of a program together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gangway/collective/array.h"
#include "gangway/collective/op.h"
#include "gangway/net/fabric.h"

namespace gangway::collective {

// What one participant brings to one run of a collective. The memory must stay valid until `done` is called.
struct Contribution {
  absl::InlinedVector<Array, 1> operands;
  absl::InlinedVector<Array, 1> results;
  // Called exactly once, on any thread, possibly before Join returns. Not OK: the results hold nothing of use.
  std::function<void(const absl::Status&)> done;
};

// What a gang is, for its error messages and its deadline.
struct Launch {
  int64_t id = 0;                         // the launch, the same for all participants
  std::string program;                    // its name
  std::vector<std::string> participants;  // by partition index: the device's name, e.g. "worker 0 cpu:3"
  std::vector<net::PeerId> owners;        // by partition index: the worker; empty: all are in this process
};

// Asynchronous: nobody blocks. A participant leaves its contribution; the last one of its group to arrive does the work
// and completes the others. Collectives are matched by (op key, how often this participant came to that op before),
// never by arrival order. The first failure poisons the gang: every pending and every later collective of the launch
// completes with that error. Thread-safe. Held by shared_ptr: launches in flight on several device threads and the
// sweeper share it.
class Gang {
 public:
  virtual ~Gang() = default;

  virtual const Launch& launch() const = 0;
  // For a thread that has nothing to do but wait for a participant: looks out for what that waits for (net::Fabric::
  // LookOut) until `enough`, or returns soon.
  virtual void LookOut(absl::FunctionRef<bool()> /*enough*/) {}
  virtual void Join(int participant, std::shared_ptr<const Op> op, Contribution contribution) = 0;
  virtual void Poison(const absl::Status& status) = 0;
  virtual absl::Status status() const = 0;
};

}  // namespace gangway::collective
