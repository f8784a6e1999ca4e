#include "gangway/base/executor.h"

#include <deque>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace gangway {
namespace {

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(std::string name) : name_(std::move(name)), thread_([this] { Loop(); }) {
    pthread_setname_np(thread_.native_handle(), name_.substr(0, 15).c_str());
  }
  ~ThreadExecutor() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }
  void Post(Task task) override {
    absl::MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
  }
  bool InLoop() const override { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); }

  void Loop() {
    while (true) {
      std::deque<Task> batch;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &ThreadExecutor::Ready));
        if (tasks_.empty()) return;
        batch.swap(tasks_);
      }
      // Each task is destroyed before the next one runs, so what it captured is released in order.
      while (!batch.empty()) {
        batch.front()();
        batch.pop_front();
      }
    }
  }

  const std::string name_;
  mutable absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace

std::unique_ptr<Executor> MakeThreadExecutor(std::string name) {
  return std::make_unique<ThreadExecutor>(std::move(name));
}

struct SimExecutor::State {
  explicit State(uint64_t seed) : random(seed) {}
  std::mt19937_64 random;
  std::vector<Task> ready;
  bool running = false;
};

SimExecutor::SimExecutor(uint64_t seed) : state_(std::make_unique<State>(seed)) {}
SimExecutor::~SimExecutor() = default;

void SimExecutor::Post(Task task) { state_->ready.push_back(std::move(task)); }
bool SimExecutor::InLoop() const { return state_->running; }

int SimExecutor::RunUntilIdle(int limit) {
  int ran = 0;
  state_->running = true;
  while (!state_->ready.empty() && ran < limit) {
    std::swap(state_->ready[state_->random() % state_->ready.size()], state_->ready.back());
    Task task = std::move(state_->ready.back());
    state_->ready.pop_back();
    task();
    ++ran;
  }
  state_->running = false;
  return ran;
}

}  // namespace gangway
