// What a tenant may have at the same time.
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/amounts.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(1);  // a client may ask again and again

// What the tenant's arrays grow by when the command goes out: what it makes, less what only it still holds.
int64_t Growth(const Command& command) {
  int64_t bytes = 0;
  for (const auto& claim : command.claims) bytes += claim->total_bytes();
  for (const auto& claim : command.gives_back) bytes -= claim.use_count() == 1 ? claim->total_bytes() : 0;
  return bytes;
}

}  // namespace

absl::Status RuntimeController::Refuse(TenantUse& use, absl::string_view why) const {
  absl::Status refused = absl::ResourceExhaustedError(absl::StrCat("tenant ", use.tenant.name, ": ", why));
  if (clock_.Now() - use.refused >= kBetweenLines) {
    use.refused = clock_.Now();
    Log(absl::StrCat("refused: ", refused.message()));
  }
  return refused;
}

absl::Status RuntimeController::CheckDeviceQuota(SessionId session, absl::Span<const DeviceId> devices) {
  const std::shared_ptr<TenantUse>& use = FindSession(session)->use;
  if (use == nullptr || use->tenant.max_devices == 0) return absl::OkStatus();
  absl::flat_hash_set<DeviceId> used(devices.begin(), devices.end());
  for (const auto& [id, other] : sessions_) {
    if (other.use != use) continue;
    used.insert(other.sliced.begin(), other.sliced.end());
    for (const auto& [program, references] : other.programs) {
      const std::vector<DeviceId>& its = programs_.at(program)->devices;
      used.insert(its.begin(), its.end());
    }
  }
  if (static_cast<int>(used.size()) <= use->tenant.max_devices) return absl::OkStatus();
  return Refuse(*use, absl::StrCat("programs and slices on ", used.size(), " devices, it may have them on ",
                                   use->tenant.max_devices));
}

absl::Status RuntimeController::CheckLaunchQuota(SessionId session) {
  TenantUse* use = FindSession(session)->use.get();
  if (use == nullptr || use->tenant.max_queued == 0 || use->launches < use->tenant.max_queued) return absl::OkStatus();
  return Refuse(*use, absl::StrCat(use->launches, " programs are queued or run, as many as it may have"));
}

absl::Status RuntimeController::CheckByteQuota(const SessionRecord& session, const Command& command) const {
  TenantUse* use = session.use.get();
  if (use == nullptr || use->tenant.max_bytes == 0) return absl::OkStatus();
  const int64_t growth = Growth(command);
  if (growth <= 0 || use->memory->bytes + growth <= use->tenant.max_bytes) return absl::OkStatus();
  return Refuse(*use, absl::StrCat("takes ", BytesText(growth), "; of the ", BytesText(use->tenant.max_bytes),
                                   " it may have, ", BytesText(use->memory->bytes), " are taken"));
}

}  // namespace gangway::controller
