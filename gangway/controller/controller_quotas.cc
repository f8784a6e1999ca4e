// What a tenant may have at the same time.
#include <string>
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

// What is kept, and what was to come.
struct Kept {
  int64_t count;
  absl::string_view what;
  int64_t more = 1;
};

std::string Beyond(const Kept& kept) {
  return absl::StrCat("keeps ", kept.count, " ", kept.what, ", and ", kept.more, " more ",
                      kept.more == 1 ? "is" : "are", " beyond");
}

std::string TooMany(const SessionRecord& session, const Kept& kept, int64_t limit) {
  return absl::StrCat("session ", session.info.name, ": ", Beyond(kept), " the ", limit, " of a session");
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

absl::Status RuntimeController::CheckDeviceQuota(const SessionRecord& session,
                                                 absl::Span<const DeviceId> devices) const {
  const std::shared_ptr<TenantUse>& use = session.use->tenant;
  if (use == nullptr || use->tenant.max_devices == 0) return absl::OkStatus();
  absl::flat_hash_set<DeviceId> used(devices.begin(), devices.end());
  for (const auto& [id, other] : sessions_) {
    if (other.use->tenant != use) continue;
    for (const std::vector<DeviceId>& slice : other.slices) used.insert(slice.begin(), slice.end());
    for (const auto& [program, references] : other.programs) {
      const std::vector<DeviceId>& its = programs_.at(program)->devices;
      used.insert(its.begin(), its.end());
    }
  }
  if (static_cast<int>(used.size()) <= use->tenant.max_devices) return absl::OkStatus();
  return Refuse(*use, absl::StrCat("programs and slices on ", used.size(), " devices, it may have them on ",
                                   use->tenant.max_devices));
}

absl::Status RuntimeController::CheckLaunchQuota(const SessionRecord& session) const {
  TenantUse* use = session.use->tenant.get();
  if (use == nullptr || use->tenant.max_queued == 0 || use->launches < use->tenant.max_queued) return absl::OkStatus();
  return Refuse(*use, absl::StrCat(use->launches, " programs are queued or run, as many as it may have"));
}

absl::Status RuntimeController::CheckByteQuota(const SessionRecord& session, const Command& command) const {
  TenantUse* use = session.use->tenant.get();
  if (use == nullptr || use->tenant.max_bytes == 0) return absl::OkStatus();
  const int64_t growth = Growth(command);
  if (growth <= 0 || use->memory->bytes + growth <= use->tenant.max_bytes) return absl::OkStatus();
  return Refuse(*use, absl::StrCat("takes ", BytesText(growth), "; of the ", BytesText(use->tenant.max_bytes),
                                   " it may have, ", BytesText(use->memory->bytes), " are taken"));
}

absl::Status RuntimeController::CheckArrayQuota(const SessionRecord& session, int64_t more) const {
  if (session.use->arrays + more > options_.session.arrays) {
    return absl::ResourceExhaustedError(
        TooMany(session, {session.use->arrays, "arrays", more}, options_.session.arrays));
  }
  TenantUse* use = session.use->tenant.get();
  if (use == nullptr || use->tenant.max_arrays == 0 || use->arrays + more <= use->tenant.max_arrays) {
    return absl::OkStatus();
  }
  return Refuse(*use,
                absl::StrCat(Beyond({use->arrays, "arrays", more}), " its max_arrays of ", use->tenant.max_arrays));
}

absl::Status RuntimeController::CheckProgramQuota(const SessionRecord& session) const {
  if (session.use->programs >= options_.session.programs) {
    return absl::ResourceExhaustedError(
        TooMany(session, {session.use->programs, "programs"}, options_.session.programs));
  }
  TenantUse* use = session.use->tenant.get();
  if (use == nullptr || use->tenant.max_programs == 0 || use->programs < use->tenant.max_programs) {
    return absl::OkStatus();
  }
  return Refuse(*use,
                absl::StrCat(Beyond({use->programs, "programs"}), " its max_programs of ", use->tenant.max_programs));
}

absl::Status RuntimeController::CheckHostQuota(const SessionRecord& session, int64_t bytes) const {
  if (session.held.empty() || session.use->tenant == nullptr) return absl::OkStatus();
  return session.use->tenant->host_bytes->Check(bytes);
}

absl::Status RuntimeController::CheckQuestions(const SessionRecord& session) const {
  if (session.use->questions < options_.session.questions) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("session ", session.info.name, ": ", session.use->questions,
                                                   " questions are not answered yet, as many as it may have"));
}

}  // namespace gangway::controller
