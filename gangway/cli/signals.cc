#include "gangway/cli/signals.h"

#include <signal.h>

#include <atomic>

namespace gangway::cli {
namespace {

// The one mutable global: a signal handler has no other place to put what it saw.
std::atomic<int> last_signal{0};
std::atomic<int> signal_count{0};

void Remember(int signal) {
  last_signal.store(signal);
  signal_count.fetch_add(1);
}

}  // namespace

void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = Remember;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int CaughtSignal() { return last_signal.load(); }
int CaughtCount() { return signal_count.load(); }

}  // namespace gangway::cli
