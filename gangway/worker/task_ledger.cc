#include "gangway/worker/task_ledger.h"

#include <algorithm>
#include <utility>

namespace gangway::worker {

void Task::PartDone(const absl::Status& status) {
  if (!status.ok()) {
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
  }
  if (parts_left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  absl::Status final_status;
  {
    absl::MutexLock lock(&mutex_);
    final_status = status_;
  }
  std::exchange(over_, nullptr)(std::move(final_status));
}

std::shared_ptr<Task> TaskLedger::Begin(TaskId id, int parts, bool report) {
  auto task = std::make_shared<Task>();
  task->id_ = id;
  task->parts_left_ = parts;
  task->over_ = [loop = loop_, weak = std::weak_ptr<TaskLedger*>(self_), id](absl::Status status) {
    loop->Post([weak, id, status] {
      if (auto self = weak.lock()) (*self)->Over(id, status);
    });
  };
  open_.emplace(id, report);
  if (parts == 0) Over(id, absl::OkStatus());
  return task;
}

void TaskLedger::Over(TaskId id, absl::Status status) {
  auto it = open_.find(id);
  if (it == open_.end()) return;
  const bool urgent = it->second || !status.ok();
  open_.erase(it);
  unsaid_.tasks.push_back({id, std::move(status)});
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
