// Memory of the devices: what does not fit waits.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/amounts.h"
#include "gangway/base/check.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {
namespace {

// Smaller shards are not counted: there are too many of them, and they do not fill a device.
constexpr int64_t kSmallBytes = 4096;

// What a command takes on each of its devices, once it has given back what only it holds.
int64_t Need(const Command& command) {
  int64_t bytes = command.scratch;
  for (const auto& claim : command.claims) bytes += claim->bytes();
  for (const auto& claim : command.gives_back) bytes -= claim.use_count() == 1 ? claim->bytes() : 0;
  return bytes;
}

}  // namespace

resource::ClaimRef RuntimeController::NewClaim(const SessionRecord& session, const Layout& layout) {
  const TenantUse* use = session.use->tenant.get();
  if (layout.shard_bytes < kSmallBytes && (use == nullptr || use->tenant.max_bytes == 0)) return nullptr;
  return std::make_shared<resource::MemoryBook::Claim>(memory_, layout.spec.devices, layout.shard_bytes,
                                                       use == nullptr ? nullptr : use->memory);
}

absl::Status RuntimeController::CheckCapacity(absl::Span<const DeviceId> devices, int64_t bytes) const {
  const std::optional<DeviceId> device = memory_.TooSmall(devices, bytes);
  if (!device.has_value()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("takes ", BytesText(bytes), " on each device; device ", device->value(), " of worker ",
                   WorkerName(cluster_.device(*device).worker), " has ", BytesText(memory_[*device].limit)));
}

bool RuntimeController::TakeMemory(SessionId id, SessionRecord& session) {
  const Command& command = session.held.front();
  if (command.claims.empty() || command.claims[0]->taken()) return true;
  if (absl::Status status = CheckByteQuota(session, command); !status.ok()) {
    FailFrontLater(id, session, std::move(status));
    return false;
  }
  const bool waited = session.lacks_memory_since < absl::InfiniteFuture();
  if (memory_.Full(command.claims[0]->devices(), Need(command)).has_value()) {
    if (!waited) {
      session.lacks_memory_since = clock_.Now();
      memory_queue_.push_back(id);
      Log(absl::StrCat("session ", session.info.name, ": ", command.task->What(),
                       " waits: ", LacksMemory(command).message()));
    }
    return false;
  }
  if (waited) StopWaiting(id, session);
  for (const auto& claim : command.claims) claim->Take();
  return true;
}

void RuntimeController::StopWaiting(SessionId id, SessionRecord& session) {
  session.lacks_memory_since = absl::InfiniteFuture();
  std::erase(memory_queue_, id);
}

// Those that wait longest first; a smaller one may pass a larger one that still does not fit.
void RuntimeController::RetryMemory() {
  retry_posted_ = false;
  Together([this] {
    for (SessionId id : std::deque<SessionId>(memory_queue_)) {
      SessionRecord* session = FindSession(id);
      if (session != nullptr) Drain(id, *session);
    }
  });
}

void RuntimeController::GiveUpOnMemory() {
  for (SessionId id : std::deque<SessionId>(memory_queue_)) {
    SessionRecord* session = FindSession(id);
    if (session == nullptr || clock_.Now() - session->lacks_memory_since < options_.memory_patience) continue;
    const absl::Status lacks = LacksMemory(session->held.front());
    FailHeld(*session, absl::Status(lacks.code(), absl::StrCat("after ", absl::FormatDuration(options_.memory_patience),
                                                               " of waiting: ", lacks.message())));
  }
}

// Callers are in the middle of something, and whoever hears of a failure may close the session.
void RuntimeController::FailFrontLater(SessionId id, const SessionRecord& session, absl::Status why) {
  loop_->Post([this, weak = std::weak_ptr<RuntimeController*>(self_), id, task = session.held.front().task,
               why = std::move(why)] {
    if (weak.lock() == nullptr || task->over) return;
    const SessionRecord* session = FindSession(id);
    if (session != nullptr && !session->held.empty() && session->held.front().task == task) FailHeld(*session, why);
  });
}

// The first of the session's commands fails, and with it all that wait behind it for what it was to make.
void RuntimeController::FailHeld(const SessionRecord& session, const absl::Status& status) {
  std::vector<std::shared_ptr<TaskRecord>> failed = {session.held.front().task};
  absl::flat_hash_set<net::BufferId> missing;
  ForEachOutput(*failed[0], [&](net::BufferId buffer) { missing.insert(buffer); });
  for (const Command& command : session.held) {
    bool fails = false;
    ForEachBuffer(command, [&](net::BufferId buffer) { fails |= missing.contains(buffer); });
    if (!fails || command.task == nullptr || command.task == failed[0]) continue;
    failed.push_back(command.task);
    ForEachOutput(*command.task, [&](net::BufferId buffer) { missing.insert(buffer); });
  }
  for (const auto& task : failed) Fail(task, status);
}

// Which device has no room, and whose arrays are there.
absl::Status RuntimeController::LacksMemory(const Command& command) const {
  const int64_t bytes = Need(command);
  const DeviceId device = memory_.Full(command.claims[0]->devices(), bytes).value_or(command.claims[0]->devices()[0]);
  std::set<const resource::MemoryBook::Claim*> seen;
  std::map<std::string, int64_t> holders;
  for (const auto& [id, array] : arrays_) {
    for (const auto& claim : array->memory) {
      const auto& devices = claim->devices();
      if (!claim->taken() || std::find(devices.begin(), devices.end(), device) == devices.end()) continue;
      auto session = sessions_.find(array->session);
      if (session == sessions_.end() || !seen.insert(claim.get()).second) continue;
      holders[session->second.info.name] += claim->bytes();
    }
  }
  auto holder = [](std::string* out, const auto& pair) {
    absl::StrAppend(out, "session ", pair.first, " ", BytesText(pair.second));
  };
  return absl::ResourceExhaustedError(
      absl::StrCat(BytesText(bytes), " do not fit on device ", device.value(), " of worker ",
                   WorkerName(cluster_.device(device).worker), ": ", BytesText(memory_[device].claimed), " of ",
                   BytesText(memory_[device].limit), " are taken (", absl::StrJoin(holders, ", ", holder), ")"));
}

std::vector<DeviceMemory> RuntimeController::Memory() const {
  GW_CHECK(loop_->InLoop());
  std::vector<DeviceMemory> all;
  for (const resource::Device& device : cluster_.devices()) {
    const WorkerLink& link = *links_[device.worker.value()];
    const std::vector<int64_t>& held = link.beat.device_bytes;
    const bool told = !link.lost && device.local < static_cast<int>(held.size());
    all.push_back({device.id, told ? held[device.local] : 0, memory_[device.id].claimed, memory_[device.id].limit});
  }
  return all;
}

}  // namespace gangway::controller
