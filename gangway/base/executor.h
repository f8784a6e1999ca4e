// Where a task runs. Every runtime object takes the Executor of the loop that owns it and never starts threads itself.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace gangway {

using Task = std::function<void()>;

// Post is thread-safe and never runs the task before it returns, except for InlineExecutor.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(Task task) = 0;
  // True on the thread (or in the turn) that runs this executor's tasks: assert it where an object is owned by a loop.
  virtual bool InLoop() const = 0;
};

// Runs each task at once on the caller's thread; for pure tests.
class InlineExecutor final : public Executor {
 public:
  void Post(Task task) override { task(); }
  bool InLoop() const override { return true; }
};

// One thread, tasks in the order posted. The destructor runs what was posted before it, then joins.
std::unique_ptr<Executor> MakeThreadExecutor(std::string name);

// Single-threaded executor for tests that runs ready tasks in an order drawn from a seed.
class SimExecutor final : public Executor {
 public:
  explicit SimExecutor(uint64_t seed);
  ~SimExecutor() override;
  void Post(Task task) override;
  bool InLoop() const override;
  // Runs tasks until none is left or `limit` have run; returns how many ran.
  int RunUntilIdle(int limit = 1 << 20);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gangway
