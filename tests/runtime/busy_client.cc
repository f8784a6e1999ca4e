#include "tests/runtime/busy_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gangway/base/status.h"
#include "tests/runtime/hand_made.h"

namespace gangway {

BusyClient::BusyClient(ServedCluster& cluster, std::vector<int> devices)
    : cluster_(cluster), devices_(std::move(devices)), thread_([this] { Work(); }) {}

BusyClient::~BusyClient() {
  stop_ = true;
  thread_.join();
}

std::string BusyClient::wrong() const {
  absl::MutexLock lock(&mutex_);
  return wrong_;
}

bool BusyClient::Succeeds() const {
  const int before = successes();
  const absl::Time end = absl::Now() + kPatience;
  while (successes() < before + 2 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(10));
  return successes() >= before + 2;
}

void BusyClient::Work() {
  const absl::Status status = WorkConnected();
  if (!status.ok()) Wrong(status.ToString());
}

absl::Status BusyClient::WorkConnected() {
  GW_ASSIGN_OR_RETURN(client::Client client, cluster_.Connect(absl::StrCat("busy on device ", devices_[0])));
  const int count = static_cast<int>(devices_.size());
  GW_ASSIGN_OR_RETURN(client::Function step, client.Compile(AllReduceAddOne(count), {devices_}));
  while (!stop_) {
    const absl::Status outcome = Round(step, static_cast<float>(count));
    if (outcome.ok()) {
      ++successes_;
      continue;
    }
    ++failures_;
    const bool named = outcome.message().find("worker w") != std::string::npos;
    if (!named || absl::IsDeadlineExceeded(outcome)) Wrong(outcome.ToString());
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::OkStatus();
}

absl::Status BusyClient::Round(const client::Function& step, float devices) {
  GW_ASSIGN_OR_RETURN(client::Array x, step.Put(Literal::Scalar(DType::kF32, 1.0f), 0));
  float expected = 1;
  for (int i = 0; i < 3; ++i) {
    GW_ASSIGN_OR_RETURN(std::vector<client::Array> results, step.Call({x}));
    x = results[0];
    expected = devices * expected + 1;
  }
  GW_ASSIGN_OR_RETURN(Literal got, x.Fetch().Await(absl::Now() + kPatience, "a result, which hangs"));
  if (got.values<float>()[0] == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("got ", got.values<float>()[0], ", not ", expected));
}

void BusyClient::Wrong(std::string what) {
  absl::MutexLock lock(&mutex_);
  if (wrong_.empty()) wrong_ = std::move(what);
}

}  // namespace gangway
