#include "gangway/device/pjrt/event.h"

#include <utility>

namespace gangway::device::pjrt {
namespace {

struct Waiter {
  std::shared_ptr<const Plugin> plugin;
  PJRT_Event* event;
  Promise<Unit> promise;
};

void OnReady(PJRT_Error* error, void* argument) {
  std::unique_ptr<Waiter> waiter(static_cast<Waiter*>(argument));
  absl::Status status = waiter->plugin->ToStatus(error);
  Destroy(*waiter->plugin, waiter->event);
  waiter->promise.Set(status.ok() ? absl::StatusOr<Unit>(Unit{}) : status);
}

}  // namespace

void Destroy(const Plugin& plugin, PJRT_Event* event) {
  GW_PJRT_ARGS(PJRT_Event_Destroy_Args, args);
  args.event = event;
  plugin.Call(plugin.api().PJRT_Event_Destroy, args).IgnoreError();
}

Future<Unit> ToFuture(std::shared_ptr<const Plugin> plugin, PJRT_Event* event) {
  const Plugin& p = *plugin;
  auto* waiter = new Waiter{std::move(plugin), event, {}};
  Future<Unit> future = waiter->promise.future();
  GW_PJRT_ARGS(PJRT_Event_OnReady_Args, args);
  args.event = event;
  args.callback = &OnReady;
  args.user_arg = waiter;
  if (absl::Status status = p.Call(p.api().PJRT_Event_OnReady, args); !status.ok()) {
    // Refused: the callback will not come.
    std::unique_ptr<Waiter> owned(waiter);
    Destroy(p, event);
    owned->promise.Set(status);
  }
  return future;
}

bool IsReady(const Plugin& plugin, PJRT_Event* event) {
  GW_PJRT_ARGS(PJRT_Event_IsReady_Args, args);
  args.event = event;
  return !plugin.Call(plugin.api().PJRT_Event_IsReady, args).ok() || args.is_ready;
}

absl::Status Await(const Plugin& plugin, PJRT_Event* event) {
  GW_PJRT_ARGS(PJRT_Event_Await_Args, args);
  args.event = event;
  absl::Status status = plugin.Call(plugin.api().PJRT_Event_Await, args);
  Destroy(plugin, event);
  return status;
}

}  // namespace gangway::device::pjrt
