#include "gangway/status/metrics.h"

#include <map>
#include <utility>
#include <vector>

#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace gangway::status {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Families {
 public:
  void Gauge(std::string name, std::string help, double value, std::vector<ClientMetric::Label> labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = value;
    Family(std::move(name), std::move(help), MetricType::Gauge).metric.push_back(std::move(metric));
  }
  void Counter(std::string name, std::string help, double value, std::vector<ClientMetric::Label> labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = value;
    Family(std::move(name), std::move(help), MetricType::Counter).metric.push_back(std::move(metric));
  }
  std::string Text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  MetricFamily& Family(std::string name, std::string help, MetricType type) {
    for (MetricFamily& family : families_) {
      if (family.name == name) return family;
    }
    families_.push_back({std::move(name), std::move(help), type, {}});
    return families_.back();
  }

  std::vector<MetricFamily> families_;  // few
};

struct TenantTotals {
  int64_t sessions = 0, waiting = 0;
};

}  // namespace

std::string MetricsText(const controller::Observation& seen) {
  Families families;
  families.Counter("gangway_launches_total", "Launches that are over", static_cast<double>(seen.launches));
  families.Counter("gangway_failed_launches_total", "Launches that failed", static_cast<double>(seen.failed_launches));
  families.Counter("gangway_launch_messages_total", "Messages to workers that launch programs",
                   static_cast<double>(seen.launch_messages));
  families.Counter("gangway_device_seconds_total", "Time of launches on devices, all devices together",
                   absl::ToDoubleSeconds(seen.device_time));
  families.Gauge("gangway_pending_launches", "Launches that are not over",
                 static_cast<double>(seen.totals.pending_launches));
  families.Gauge("gangway_waiting_for_memory", "Sessions whose next program or array does not fit now",
                 static_cast<double>(seen.totals.waiting_for_memory));
  families.Gauge("gangway_sessions", "Open sessions", static_cast<double>(seen.totals.sessions));
  families.Gauge("gangway_arrays", "Logical arrays", static_cast<double>(seen.totals.arrays));
  families.Gauge("gangway_programs", "Loaded programs", static_cast<double>(seen.totals.programs));
  for (const controller::WorkerState& worker : seen.workers) {
    const std::vector<ClientMetric::Label> of = {{"worker", worker.name}};
    families.Gauge("gangway_worker_up", "1 while the worker is heard of", worker.alive ? 1 : 0, of);
    families.Gauge("gangway_worker_devices", "Devices of the worker", worker.devices, of);
    families.Gauge("gangway_store_bytes", "Bytes held by the worker's store", static_cast<double>(worker.store_bytes),
                   of);
    families.Gauge("gangway_store_buffers", "Buffers held by the worker's store",
                   static_cast<double>(worker.store_buffers), of);
    families.Gauge("gangway_worker_pending_tasks", "Tasks the worker has not finished",
                   static_cast<double>(worker.pending_tasks), of);
    families.Counter("gangway_sent_bytes_total", "Bytes that the worker sent to others",
                     static_cast<double>(worker.sent_bytes), of);
    families.Counter("gangway_received_bytes_total", "Bytes that the worker received from others",
                     static_cast<double>(worker.received_bytes), of);
  }
  std::map<std::string, TenantTotals> tenants;
  for (const controller::SessionState& session : seen.sessions) {
    TenantTotals& totals = tenants[session.tenant];
    ++totals.sessions;
    totals.waiting += session.waiting;
  }
  for (const auto& [tenant, totals] : tenants) {
    const std::vector<ClientMetric::Label> of = {{"tenant", tenant}};
    families.Gauge("gangway_tenant_sessions", "Open sessions of the tenant", static_cast<double>(totals.sessions), of);
    families.Gauge("gangway_tenant_waiting", "Commands of the tenant that wait for the scheduler",
                   static_cast<double>(totals.waiting), of);
  }
  return families.Text();
}

}  // namespace gangway::status
