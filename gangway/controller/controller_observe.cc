// What an operator sees.
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {

void RuntimeController::Note(const TaskRecord& task) {
  absl::Duration device_time;
  for (const IslandPart& part : *task.islands) device_time += task.took * part.devices.size();
  device_time_ += device_time;
  if (SessionRecord* session = FindSession(task.session)) {
    ++session->launches;
    session->device_time += device_time;
  }
  if (auto program = programs_.find(task.program); program != programs_.end()) ++program->second->launches;
  if (!journal_.keeps()) return journal_.Count(!task.error.ok());
  LaunchRecord launch;
  launch.program = task.name();
  launch.client = task.client;
  launch.islands = task.islands;
  launch.submitted = task.submitted;
  launch.dispatched = task.dispatched_at;
  launch.over = clock_.Now();
  launch.took = task.took;
  if (!task.error.ok()) launch.error = std::string(task.error.message());
  journal_.Add(std::move(launch));
}

Statistics RuntimeController::Stats() const {
  Statistics stats;
  stats.sessions = static_cast<int64_t>(sessions_.size());
  stats.arrays = static_cast<int64_t>(arrays_.size());
  stats.programs = static_cast<int64_t>(programs_.size());
  stats.pending_launches = pending_launches_;
  for (const auto& link : links_) {
    if (!link->lost) stats.store_bytes += link->beat.store_bytes;
  }
  stats.waiting_for_memory = static_cast<int64_t>(memory_queue_.size());
  return stats;
}

Observation RuntimeController::Observe() const {
  GW_CHECK(loop_->InLoop());
  Observation seen;
  seen.when = clock_.Now();
  seen.totals = Stats();
  seen.launches = journal_.launches();
  seen.failed_launches = journal_.failed();
  seen.launch_messages = counts_.launch_messages;
  seen.device_time = device_time_;
  for (const resource::Worker& worker : cluster_.workers()) {
    const WorkerLink& link = *links_[worker.id.value()];
    seen.workers.push_back({worker.name, worker.island, static_cast<int>(worker.devices[0].value()),
                            static_cast<int>(worker.devices.size()), worker.alive, link.last_heard,
                            link.beat.store_bytes, link.beat.store_buffers, link.beat.pending_tasks,
                            link.beat.sent_bytes, link.beat.received_bytes});
  }
  for (const auto& [id, session] : sessions_) {
    seen.sessions.push_back({session.info.name, session.info.tenant, session.info.weight, session.info.priority,
                             static_cast<int64_t>(session.held.size()), session.launches, session.device_time});
  }
  return seen;
}

std::vector<ProgramState> RuntimeController::Programs() const {
  GW_CHECK(loop_->InLoop());
  std::vector<ProgramState> programs;
  programs.reserve(programs_.size());
  for (const auto& [id, record] : programs_) {
    if (record->program == nullptr) continue;
    programs.push_back({id.value(), NameOf(record->deployment->graph), static_cast<int>(record->devices.size()),
                        record->launches, record->cost});
  }
  return programs;
}

LaunchList RuntimeController::LaunchesAfter(uint64_t after) const {
  GW_CHECK(loop_->InLoop());
  return journal_.After(after);
}

std::vector<TransferSample> RuntimeController::TransfersAfter(uint64_t after) const {
  GW_CHECK(loop_->InLoop());
  return transfers_.After(after);
}

absl::StatusOr<std::shared_ptr<const CompileRequest>> RuntimeController::Source(absl::string_view program) const {
  GW_CHECK(loop_->InLoop());
  uint64_t number = 0;
  const bool by_number = absl::SimpleAtoi(program, &number);
  const ProgramRecord* found = nullptr;
  for (const auto& [id, record] : programs_) {
    if (record->program == nullptr) continue;
    const bool is_it = by_number ? id.value() == number : record->program->compiled.name == program;
    if (is_it && (found == nullptr || found->id < id)) found = record.get();
  }
  if (found == nullptr) return absl::NotFoundError(absl::StrCat("no program ", program, " is on this cluster"));
  return found->request;
}

}  // namespace gangway::controller
