#include "gangway/status/recording.h"

#include <algorithm>

#include "absl/status/status.h"

namespace gangway::status {
namespace {

constexpr int kRecordings = 4;
// A controller that keeps 16,384 launches keeps those of a turn at 60,000 a second.
constexpr absl::Duration kTurn = absl::Milliseconds(250);

}  // namespace

absl::StatusOr<History> HistoryAfter(controller::Controller& controller, uint64_t launch, uint64_t transfer) {
  if (!controller.Remembers()) {
    return absl::NotFoundError("this controller remembers no launches: it was started with --history=0");
  }
  const controller::Observation now = controller.Observe();
  return History{now.when, static_cast<uint64_t>(now.launches), controller.LaunchesAfter(launch),
                 controller.TransfersAfter(transfer)};
}

void AddTo(Trace& trace, const History& history, absl::Time from) {
  history.recent.ForEach([&](const controller::LaunchRecord& launch) {
    if (launch.over >= from) trace.Add(launch);
  });
  for (const controller::TransferSample& sample : history.transfers) {
    if (sample.when >= from) trace.Add(sample);
  }
}

Recording::Recording(std::atomic<int>& all, const History& begin, absl::Duration length)
    : all_(all),
      admitted_(++all <= kRecordings),
      end_(begin.when + length),
      launch_(begin.launches),
      transfer_(begin.transfers.empty() ? 0 : begin.transfers.back().number) {}

Recording::~Recording() { --all_; }

absl::Duration Recording::UntilNextTurn(absl::Time now) const {
  return std::clamp(end_ - now, absl::ZeroDuration(), kTurn);
}

std::string Recording::Add(const History& history, bool last) {
  const uint64_t missing = history.launches - launch_ - history.recent.size();
  if (missing > 0) trace_.AddMissing(missing, history.when);
  AddTo(trace_, history, absl::InfinitePast());
  launch_ = history.launches;
  if (!history.transfers.empty()) transfer_ = history.transfers.back().number;
  over_ = last || history.when >= end_;
  std::string text = over_ ? trace_.Finish() : trace_.Take();
  return text.empty() ? "\n" : text;  // a sign of life
}

}  // namespace gangway::status
