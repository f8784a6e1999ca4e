#include "gangway/worker/task_ledger.h"

#include <algorithm>
#include <utility>

namespace gangway::worker {

Task::Task(TaskId id, int parts, Over over)
    : id_(id), over_(std::move(over)), parts_(parts, [this](const absl::Status& status) { Close(status); }) {}

void Task::PartDone(const absl::Status& status, absl::Duration took) {
  const int64_t micros = absl::ToInt64Microseconds(took);
  int64_t most = micros_.load(std::memory_order_relaxed);
  while (micros > most && !micros_.compare_exchange_weak(most, micros, std::memory_order_relaxed)) {
  }
  parts_.Ended(status);
}

void Task::Close(const absl::Status& status) {
  const int64_t spent = std::min<int64_t>(micros_.load(std::memory_order_relaxed), UINT32_MAX);
  std::exchange(over_, nullptr)(status, static_cast<uint32_t>(spent));
}

std::shared_ptr<Task> TaskLedger::Begin(TaskId id, int parts, bool report) {
  auto over = [loop = loop_, weak = std::weak_ptr<TaskLedger*>(self_), id](const absl::Status& status,
                                                                           uint32_t micros) {
    loop->Post([weak, id, status, micros] {
      if (auto self = weak.lock()) (*self)->Over(id, status, micros);
    });
  };
  auto task = std::make_shared<Task>(id, parts, std::move(over));
  open_.emplace(id, report);
  if (parts == 0) Over(id, absl::OkStatus(), 0);
  return task;
}

void TaskLedger::Over(TaskId id, absl::Status status, uint32_t micros) {
  auto it = open_.find(id);
  if (it == open_.end()) return;
  const bool urgent = it->second || !status.ok();
  open_.erase(it);
  unsaid_.tasks.push_back({id, std::move(status), micros});
  if (urgent) send_(std::exchange(unsaid_, {}), /*urgent=*/true);
}

void TaskLedger::Watch(const std::vector<TaskId>& tasks) {
  bool over = false;
  for (TaskId id : tasks) {
    auto it = open_.find(id);
    if (it == open_.end()) {
      over = true;  // told before, or to be told now
    } else {
      it->second = true;
    }
  }
  if (over && !unsaid_.tasks.empty()) send_(std::exchange(unsaid_, {}), /*urgent=*/true);
}

void TaskLedger::Flush() {
  if (!unsaid_.tasks.empty()) send_(std::exchange(unsaid_, {}), /*urgent=*/false);
}

}  // namespace gangway::worker
