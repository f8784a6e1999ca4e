#include "gangway/net/grpc/connection_log.h"

#include <grpc/support/log.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

namespace gangway::net {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(1);  // whoever knocks can do so often

// gRPC takes a plain function, so there is one for the process.
struct Handshakes {
  absl::Mutex mutex;
  std::function<void(const std::string&)> log ABSL_GUARDED_BY(mutex);
  absl::Time told ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  int untold ABSL_GUARDED_BY(mutex) = 0;
};

Handshakes& TheHandshakes() {
  static auto* handshakes = new Handshakes;  // gRPC's threads outlive main
  return *handshakes;
}

void Hear(gpr_log_func_args* said) {
  if (!absl::StrContains(said->message, "Handshake failed")) return;
  Handshakes& handshakes = TheHandshakes();
  absl::MutexLock lock(&handshakes.mutex);
  ++handshakes.untold;
  if (absl::Now() - handshakes.told < kBetweenLines) return;
  handshakes.told = absl::Now();
  const int count = std::exchange(handshakes.untold, 0);
  handshakes.log(absl::StrCat("refused: ", count, count == 1 ? " connection" : " connections",
                              " that did not get through TLS: ", said->message));
}

}  // namespace

void LogFailedHandshakes(std::function<void(const std::string&)> log) {
  {
    Handshakes& handshakes = TheHandshakes();
    absl::MutexLock lock(&handshakes.mutex);
    handshakes.log = std::move(log);
  }
  gpr_set_log_function(Hear);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
}

}  // namespace gangway::net
