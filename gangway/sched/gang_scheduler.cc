#include "gangway/sched/gang_scheduler.h"

#include <algorithm>
#include <utility>

#include "gangway/base/check.h"

namespace gangway::sched {
namespace {

// One that runs and one that is ready when it is over.
constexpr int kAlways = 2;

}  // namespace

TenantId GangScheduler::AddTenant(std::string name, double weight, int priority) {
  const TenantId id(next_tenant_++);
  Tenant& tenant = tenants_[id];
  tenant.name = std::move(name);
  tenant.weight = weight > 0 ? weight : 1;
  tenant.priority = priority;
  tenant.pass = virtual_time_;
  return id;
}

void GangScheduler::RemoveTenant(TenantId id) {
  auto it = tenants_.find(id);
  if (it == tenants_.end()) return;
  waiting_ -= static_cast<int64_t>(it->second.waiting.size());
  tenants_.erase(it);
}

bool GangScheduler::HasRoom(const Gang& gang) const {
  for (int device : *gang.devices) {
    const Load& load = load_[device];
    if (load.launches >= options_.lookahead) return false;
    if (load.launches >= kAlways && load.time >= options_.horizon) return false;
  }
  return true;
}

bool GangScheduler::Submit(Gang gang, absl::Time now) {
  auto it = tenants_.find(gang.tenant);
  GW_CHECK(it != tenants_.end(), "gang of an unknown tenant");
  Tenant& tenant = it->second;
  for (int device : *gang.devices) {
    if (device >= static_cast<int>(load_.size())) load_.resize(device + 1);
  }
  // Whoever had nothing waiting does not save up the time it did not use.
  if (tenant.waiting.empty()) tenant.pass = std::max(tenant.pass, virtual_time_);
  if (waiting_ == 0 && HasRoom(gang)) {
    Admit(std::move(gang), tenant, now);
    return true;
  }
  const GangId id = gang.id;
  tenant.waiting.push_back(std::move(gang));
  ++waiting_;
  // It may stand on devices nobody waits for.
  const std::vector<GangId> admitted = AdmitWaiting(now);
  GW_CHECK(admitted.size() <= 1 && (admitted.empty() || admitted[0] == id), "only the new gang can have found room");
  return !admitted.empty();
}

void GangScheduler::Admit(Gang gang, Tenant& tenant, absl::Time now) {
  for (int device : *gang.devices) {
    ++load_[device].launches;
    load_[device].time += gang.cost;
  }
  virtual_time_ = std::max(virtual_time_, tenant.pass);
  tenant.pass += absl::ToDoubleSeconds(gang.cost) / tenant.weight;
  log_.push_back({next_sequence_++, gang.id, gang.tenant, now});
  if (log_.size() > options_.log_capacity) log_.pop_front();
  under_way_.emplace(gang.id, UnderWay{std::move(gang.devices), gang.tenant, gang.cost});
}

std::vector<GangId> GangScheduler::AdmitWaiting(absl::Time now) {
  std::vector<GangId> admitted;
  bool progress = true;
  while (progress && waiting_ > 0) {
    progress = false;
    std::vector<Tenant*> order;
    for (auto& [id, tenant] : tenants_) {
      if (!tenant.waiting.empty()) order.push_back(&tenant);
    }
    std::stable_sort(order.begin(), order.end(), [](const Tenant* a, const Tenant* b) {
      return a->priority != b->priority ? a->priority > b->priority : a->pass < b->pass;
    });
    std::vector<bool> reserved(load_.size(), false);
    for (Tenant* tenant : order) {
      Gang& head = tenant->waiting.front();
      auto is_reserved = [&](int device) { return reserved[device]; };
      if (HasRoom(head) && std::none_of(head.devices->begin(), head.devices->end(), is_reserved)) {
        admitted.push_back(head.id);
        Gang gang = std::move(head);
        tenant->waiting.pop_front();
        --waiting_;
        Admit(std::move(gang), *tenant, now);
        progress = true;  // its pass has changed: look at all of them again
        break;
      }
      for (int device : *head.devices) reserved[device] = true;
    }
  }
  return admitted;
}

std::vector<GangId> GangScheduler::Finished(GangId gang, absl::Time now, std::optional<absl::Duration> took) {
  auto it = under_way_.find(gang);
  if (it == under_way_.end()) return {};
  const UnderWay& over = it->second;
  for (int device : *over.devices) {
    --load_[device].launches;
    load_[device].time -= over.cost;
  }
  if (auto tenant = tenants_.find(over.tenant); took.has_value() && tenant != tenants_.end()) {
    tenant->second.pass += absl::ToDoubleSeconds(*took - over.cost) / tenant->second.weight;
  }
  under_way_.erase(it);
  if (waiting_ == 0) return {};
  return AdmitWaiting(now);
}

std::vector<GangId> GangScheduler::Cancel(GangId gang, absl::Time now) {
  for (auto& [id, tenant] : tenants_) {
    auto it = std::find_if(tenant.waiting.begin(), tenant.waiting.end(), [&](const Gang& g) { return g.id == gang; });
    if (it == tenant.waiting.end()) continue;
    tenant.waiting.erase(it);
    --waiting_;
    return AdmitWaiting(now);
  }
  return {};
}

}  // namespace gangway::sched
