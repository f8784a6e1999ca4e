// Slices that move to other devices, and workers that leave.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/check.h"
#include "gangway/base/status.h"
#include "gangway/controller/runtime_controller.h"

namespace gangway::controller {
namespace {

// The list with what moves replaced; empty when none of it moves.
std::vector<DeviceId> Moved(const std::vector<DeviceId>& devices, const absl::flat_hash_map<DeviceId, DeviceId>& to) {
  std::vector<DeviceId> moved = devices;
  bool any = false;
  for (DeviceId& device : moved) {
    auto it = to.find(device);
    if (it == to.end()) continue;
    device = it->second;
    any = true;
  }
  return any ? moved : std::vector<DeviceId>();
}

}  // namespace

std::vector<bool> RuntimeController::UsedDevices() const {
  std::vector<bool> used(cluster_.devices().size(), false);
  auto mark = [&used](const std::vector<DeviceId>& devices) {
    for (DeviceId device : devices) used[device.value()] = true;
  };
  for (size_t i = 0; i < slices_on_.size(); ++i) used[i] = slices_on_[i] > 0;
  for (const auto& [id, program] : programs_) mark(program->devices);
  for (const auto& [id, array] : arrays_) {
    if (!array->deleted && ErrorOf(*array).ok()) mark(array->layout->spec.devices);
  }
  for (const Moving& moving : relocations_) {
    for (const auto& [from, to] : moving.to) used[to.value()] = true;
  }
  return used;
}

absl::Status RuntimeController::CheckRelocation(const resource::Relocation& relocation) const {
  std::vector<bool> used = UsedDevices();
  for (auto [from, to] : relocation) {
    for (DeviceId device : {from, to}) {
      if (!cluster_.Has(device)) return absl::InvalidArgumentError(absl::StrCat("there is no device ", device.value()));
    }
    if (cluster_.device(from).island != cluster_.device(to).island) {
      return absl::InvalidArgumentError(
          absl::StrCat("devices ", from.value(), " and ", to.value(), " are in different islands"));
    }
    if (used[to.value()]) return absl::FailedPreconditionError(absl::StrCat("device ", to.value(), " is in use"));
    used[to.value()] = true;
  }
  return absl::OkStatus();
}

Future<Unit> RuntimeController::Relocate(resource::Relocation relocation) {
  GW_CHECK(loop_->InLoop());
  if (absl::Status status = CheckRelocation(relocation); !status.ok()) {
    return Future<Unit>(absl::StatusOr<Unit>(Annotate(status, "relocation")));
  }
  Moving moving;
  moving.to.insert(relocation.begin(), relocation.end());
  const Future<Unit> done = moving.done.future();
  relocations_.push_back(std::move(moving));
  ContinueRelocation();
  return done;
}

absl::Status RuntimeController::CheckTargets(const Moving& moving) const {
  for (const auto& [from, to] : moving.to) {
    const resource::Worker& worker = cluster_.worker(cluster_.device(to).worker);
    if (!worker.alive) {
      return absl::UnavailableError(absl::StrCat("device ", to.value(), ": worker ", worker.name, " is lost"));
    }
  }
  return absl::OkStatus();
}

void RuntimeController::ContinueRelocation() {
  while (!relocations_.empty()) {
    const Moving& moving = relocations_.front();
    if (absl::Status lost = CheckTargets(moving); !lost.ok()) return FailRelocation(lost);
    bool loading = false;
    for (auto& [id, program] : programs_) {
      const std::vector<DeviceId> devices = Moved(program->devices, moving.to);
      if (devices.empty() || !program->error.ok() || program->deployment == nullptr) continue;
      if (program->next == nullptr) {
        auto next = NewDeployment(id, devices);
        if (!next.ok()) return FailRelocation(next.status());
        program->next = *std::move(next);
        for (const resource::Share& share : program->next->placement) Load(*program, *program->next, share.worker);
      }
      loading |= !program->next->loading.empty();
    }
    if (loading) return;
    Together([&] { ChangeSeats(moving); });
    const Promise<Unit> done = moving.done;
    relocations_.pop_front();
    done.Set(Unit{});
  }
}

void RuntimeController::FailRelocation(const absl::Status& status) {
  if (relocations_.empty()) return;
  const Promise<Unit> done = relocations_.front().done;
  relocations_.pop_front();
  for (auto& [id, program] : programs_) program->next.reset();
  done.Set(Annotate(status, "relocation"));
  ContinueRelocation();
}

// In one turn: what was dispatched before means the devices of before, what comes after those of after, and the copies
// stand between them in every session's order.
void RuntimeController::ChangeSeats(const Moving& moving) {
  std::vector<std::pair<ArrayId, ArrayRecord*>> arrays;
  for (auto& [id, array] : arrays_) {
    if (!Moved(array->layout->spec.devices, moving.to).empty()) arrays.emplace_back(id, array.get());
  }
  std::sort(arrays.begin(), arrays.end());  // in the order made, the same on every run
  for (auto [id, array] : arrays) FollowArray(id, *array, moving);
  for (auto [from, to] : moving.to) {
    cluster_.Swap(from, to);
    memory_.Swap(from, to);
    for (DeviceId id : {from, to}) {
      const resource::Device& device = cluster_.device(id);
      devices_[id.value()] = {id, device.kind, WorkerName(device.worker), device.island,
                              std::vector<int>(device.coords.begin(), device.coords.end())};
    }
  }
  absl::flat_hash_map<const Layout*, std::shared_ptr<const Layout>> placed;  // arrays that look alike share one
  auto place = [&](std::shared_ptr<const Layout>& layout) {
    std::shared_ptr<const Layout>& now = placed[layout.get()];
    if (now == nullptr) {
      auto changed = std::make_shared<Layout>(*layout);
      auto placement = cluster_.Place(layout->spec.devices);
      if (placement.ok()) changed->placement = *std::move(placement);  // lost ones are where they were
      now = std::move(changed);
    }
    layout = now;
  };
  std::vector<std::shared_ptr<const Layout>> before;  // their addresses must not be used again meanwhile
  for (auto [id, array] : arrays) before.push_back(array->layout), place(array->layout);
  for (auto& [id, program] : programs_) {
    if (program->next == nullptr) continue;
    for (auto* layouts : {&program->parameters, &program->outputs}) {
      for (auto& layout : *layouts) before.push_back(layout), place(layout);
    }
    program->deployment = std::move(program->next);
    if (program->program == nullptr) FinishProgram(*program, absl::OkStatus());
  }
}

// Its shards on other devices, under another buffer; called before the seats change.
void RuntimeController::FollowArray(ArrayId id, ArrayRecord& array, const Moving& moving) {
  if (array.deleted) return;
  if (!ErrorOf(array).ok()) return FreeData(array);
  ArraySpec spec = array.layout->spec;
  spec.devices = Moved(spec.devices, moving.to);
  std::vector<Move> moves;
  for (int i = 0; i < static_cast<int>(spec.devices.size()); ++i) moves.push_back({id, i, i});
  const net::BufferId buffer(next_array_++);
  auto copy = [&]() -> absl::StatusOr<Command> {
    GW_ASSIGN_OR_RETURN(std::shared_ptr<const Layout> layout, MakeLayout(std::move(spec)));
    return CopyCommand(array.session, *layout, moves, absl::StrCat("array ", id.value(), " moves"), buffer);
  }();
  const std::vector<resource::ClaimRef> memory = array.memory;  // goes along
  if (copy.ok()) {
    array.producer = copy->task;
    Run(array.session, *std::move(copy));
  } else {
    array.error = copy.status();
  }
  FreeData(array);
  array.buffer = buffer;
  array.memory = memory;
}

void RuntimeController::OnLeaving(WorkerLink& link) {
  if (link.leaves_since < absl::InfiniteFuture()) return;
  link.leaves_since = clock_.Now();
  cluster_.MarkLeaving(link.id);
  Log(absl::StrCat("worker ", link.name, " wants to leave"));
}

// Once nobody needs its devices and all it was told is done; what is on them moves where there are others.
void RuntimeController::LetLeave(const std::shared_ptr<WorkerLink>& link) {
  const std::vector<bool> used = UsedDevices();
  std::vector<DeviceId> leaving;
  for (DeviceId device : cluster_.worker(link->id).devices) {
    if (used[device.value()]) leaving.push_back(device);
  }
  const bool busy =
      std::any_of(tasks_.begin(), tasks_.end(),
                  [&](const auto& entry) { return entry.second->progress.IsOpen(dataflow::NodeId(0), link->id); }) ||
      std::any_of(requests_.begin(), requests_.end(),
                  [&](const auto& entry) { return entry.second.worker == link->id; });
  if (leaving.empty()) {
    if (!busy) Lose(link, absl::CancelledError("it has left"));
    return;
  }
  if (!relocations_.empty()) return;
  if (auto plan = resource::PlanRelocation(cluster_, leaving, used); plan.ok()) {
    Relocate(*std::move(plan)).OnReady([](const absl::StatusOr<Unit>&) {
    });  // where it fails, the next tick tries again
  } else if (clock_.Now() - link->leaves_since > options_.leave_patience) {
    Lose(link, Annotate(plan.status(), "it has left with devices in use"));
  }
}

}  // namespace gangway::controller
