// Tells the thread sanitizer what Debian's abseil, which is built without it, synchronizes. Linked into
// thread-sanitized builds only; the linker's --wrap sends our calls through here (GangwayTargets.cmake lists them).
#include <sanitizer/tsan_interface.h>

#include <cstdint>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

using Duration = absl::Duration;
using Time = absl::Time;

#define GW_ACQUIRES(symbol, self)           \
  extern "C" void __real_##symbol(self*);   \
  extern "C" void __wrap_##symbol(self* m); \
  void __wrap_##symbol(self* m) {           \
    __real_##symbol(m);                     \
    __tsan_acquire(m);                      \
  }
// Its readers look at the flag behind the mutex by themselves, without a call.
#define GW_NOTIFIES(symbol, self)                    \
  extern "C" void __real_##symbol(self*);            \
  extern "C" void __wrap_##symbol(self* n);          \
  void __wrap_##symbol(self* n) {                    \
    __tsan_release(n);                               \
    __tsan_release(reinterpret_cast<Mutex*>(n) + 1); \
    __real_##symbol(n);                              \
  }
#define GW_RELEASES(symbol, self)           \
  extern "C" void __real_##symbol(self*);   \
  extern "C" void __wrap_##symbol(self* m); \
  void __wrap_##symbol(self* m) {           \
    __tsan_release(m);                      \
    __real_##symbol(m);                     \
  }
// Lets go of the mutex `lock` and takes it again.
#define GW_WAITS(symbol, result, lock, parameters, arguments) \
  extern "C" result __real_##symbol parameters;               \
  extern "C" result __wrap_##symbol parameters;               \
  result __wrap_##symbol parameters {                         \
    __tsan_release(lock);                                     \
    struct Reacquire {                                        \
      void* m;                                                \
      ~Reacquire() { __tsan_acquire(m); }                     \
    } reacquire{lock};                                        \
    return __real_##symbol arguments;                         \
  }

using absl::BlockingCounter;
using absl::Condition;
using absl::CondVar;
using absl::Mutex;
using absl::Notification;

GW_ACQUIRES(_ZN4absl7debian35Mutex4LockEv, Mutex)
GW_RELEASES(_ZN4absl7debian35Mutex6UnlockEv, Mutex)
GW_ACQUIRES(_ZN4absl7debian35Mutex10ReaderLockEv, Mutex)
GW_RELEASES(_ZN4absl7debian35Mutex12ReaderUnlockEv, Mutex)
GW_WAITS(_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE, void, m, (Mutex * m, const Condition& c), (m, c))
GW_WAITS(_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE, bool, m,
         (Mutex * m, const Condition& c, Duration d), (m, c, d))
GW_WAITS(_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, bool, m,
         (Mutex * m, const Condition& c, Time t), (m, c, t))
GW_WAITS(_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE, void, m, (CondVar * v, Mutex* m), (v, m))
GW_WAITS(_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE, bool, m,
         (CondVar * v, Mutex* m, Duration d), (v, m, d))
GW_WAITS(_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE, bool, m, (CondVar * v, Mutex* m, Time t),
         (v, m, t))
GW_NOTIFIES(_ZN4absl7debian312Notification6NotifyEv, Notification)
GW_WAITS(_ZNK4absl7debian312Notification19WaitForNotificationEv, void, n, (Notification * n), (n))
GW_WAITS(_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE, bool, n,
         (Notification * n, Duration d), (n, d))
GW_WAITS(_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE, bool, n,
         (Notification * n, Time t), (n, t))
GW_WAITS(_ZN4absl7debian315BlockingCounter14DecrementCountEv, bool, c, (BlockingCounter * c), (c))
GW_WAITS(_ZN4absl7debian315BlockingCounter4WaitEv, void, c, (BlockingCounter * c), (c))
