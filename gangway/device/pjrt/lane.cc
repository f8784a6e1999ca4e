#include "gangway/device/pjrt/lane.h"

#include <sys/mman.h>

#include <cstdint>
#include <utility>

#include "absl/time/clock.h"
#include "gangway/base/check.h"

namespace gangway::device::pjrt {
namespace {

constexpr size_t kStackBytes = 1 << 20;
constexpr size_t kGuardBytes = 4096;

void* MakeStack() {
  void* stack = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  GW_CHECK(stack != MAP_FAILED, "no address space for a stack");
  mprotect(stack, kGuardBytes, PROT_NONE);  // it grows downwards
  return stack;
}

}  // namespace

int64_t Fiber::spent_ns() const { return spent_ns_ + absl::GetCurrentTimeNanos() - turn_start_; }

absl::Status Fiber::Suspend(std::shared_ptr<collective::Gang> gang) {
  gang_ = std::move(gang);
  swapcontext(&context_, &lane_context_);
  return std::move(status_);
}

void Fiber::Wake(absl::Status status) {
  absl::MutexLock lock(&lane_.mutex_);
  status_ = std::move(status);
  // Before it has left its stack nobody may go on with it: the lane looks once it has.
  if (std::exchange(parked_, false)) {
    lane_.ready_.push_back(this);
  } else {
    woken_ = true;
  }
}

Lane::Lane() {
  absl::MutexLock lock(&mutex_);
  threads_.emplace_back([this] { Serve(); });
  pthread_setname_np(threads_.back().native_handle(), "gw-lane");
}

Lane::~Lane() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  absl::MutexLock lock(&mutex_);
  for (const auto& fiber : fibers_) munmap(fiber->stack_, kStackBytes + kGuardBytes);
}

void Lane::Start(std::function<void(Fiber&)> work) {
  absl::MutexLock lock(&mutex_);
  Fiber* fiber = NewFiber();
  fiber->work_ = std::move(work);
  fiber->over_ = fiber->woken_ = fiber->parked_ = false;
  fiber->spent_ns_ = 0;
  getcontext(&fiber->context_);
  fiber->context_.uc_stack.ss_sp = static_cast<char*>(fiber->stack_) + kGuardBytes;
  fiber->context_.uc_stack.ss_size = kStackBytes;
  fiber->context_.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(fiber);
  makecontext(&fiber->context_, reinterpret_cast<void (*)()>(&Lane::Enter), 2, static_cast<unsigned>(address),
              static_cast<unsigned>(address >> 32));
  ready_.push_back(fiber);
}

void Lane::Rescue() {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  threads_.emplace_back([this] { Serve(); });
}

Fiber* Lane::NewFiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::unique_ptr<Fiber>(new Fiber(*this)));
    fibers_.back()->stack_ = MakeStack();
    return fibers_.back().get();
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Lane::Enter(unsigned low, unsigned high) {
  auto* fiber = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  fiber->work_(*fiber);
  fiber->work_ = nullptr;
  fiber->over_ = true;
  swapcontext(&fiber->context_, &fiber->lane_context_);
}

void Lane::Serve() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    while (!Ready() && LookOut()) {
    }
    mutex_.Await(absl::Condition(this, &Lane::Ready));
    if (ready_.empty()) return;
    Fiber* fiber = ready_.front();
    ready_.pop_front();
    mutex_.Unlock();
    fiber->thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    fiber->turn_start_ = absl::GetCurrentTimeNanos();
    swapcontext(&fiber->lane_context_, &fiber->context_);
    fiber->spent_ns_ += absl::GetCurrentTimeNanos() - fiber->turn_start_;
    fiber->thread_.store(std::thread::id(), std::memory_order_relaxed);
    std::shared_ptr<collective::Gang> gang = std::move(fiber->gang_);
    mutex_.Lock();
    if (fiber->over_) {
      idle_.push_back(fiber);
    } else if (std::exchange(fiber->woken_, false)) {
      ready_.push_back(fiber);
    } else {
      fiber->parked_ = true;
      awaited_ = std::move(gang);
    }
  }
}

bool Lane::LookOut() {
  const std::shared_ptr<collective::Gang> gang = std::move(awaited_);
  if (gang == nullptr) return false;
  mutex_.Unlock();
  gang->LookOut([this] {
    absl::MutexLock lock(&mutex_);
    return Ready();
  });
  mutex_.Lock();
  return true;
}

}  // namespace gangway::device::pjrt
