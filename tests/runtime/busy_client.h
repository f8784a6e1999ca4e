// A client that computes all the time, for tests of what happens to it meanwhile.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gangway/client/client.h"
#include "tests/runtime/served_cluster.h"

namespace gangway {

// Three calls of a sum over all its devices, each on the result of the last, then a read, and again until it is
// destroyed.
class BusyClient {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(30);  // no wait may be longer

  BusyClient(ServedCluster& cluster, std::vector<int> devices);
  ~BusyClient();
  int successes() const { return successes_; }
  int failures() const { return failures_; }
  // An outcome that is neither right nor an error that names a worker; "": none.
  std::string wrong() const;
  // Whether it gets something done within the patience.
  bool Succeeds() const;

 private:
  void Work();
  absl::Status WorkConnected();
  static absl::Status Round(const client::Function& step, float devices);
  void Wrong(std::string what);

  ServedCluster& cluster_;
  const std::vector<int> devices_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> successes_ = 0, failures_ = 0;
  mutable absl::Mutex mutex_;
  std::string wrong_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace gangway
