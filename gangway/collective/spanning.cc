#include "gangway/collective/spanning.h"

#include <algorithm>
#include <utility>

#include "gangway/base/status.h"
#include "gangway/collective/parcels.h"

namespace gangway::collective {
namespace {

// What is done with a parcel of at most so many bytes is done by the network's thread, in whose cache it is; with a
// larger one it takes so long that others would wait.
constexpr size_t kHandOverBytes = 256 << 10;

}  // namespace

Sites SitesOf(const Op& op, int group, absl::Span<const net::PeerId> owners, net::PeerId self) {
  Sites sites;
  const std::vector<int>& members = op.groups[group];
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const net::PeerId owner = owners[members[rank]];
    auto at = std::find(sites.workers.begin(), sites.workers.end(), owner);
    const size_t site = at - sites.workers.begin();
    if (at == sites.workers.end()) {
      sites.workers.push_back(owner);
      sites.ranks.emplace_back();
      if (owner == self) sites.here = static_cast<int>(site);
    }
    sites.ranks[site].push_back(static_cast<int>(rank));
  }
  return sites;
}

Parcels::Parcels(SpanningRun run, std::shared_ptr<net::Fabric> fabric, std::shared_ptr<Crew> crew,
                 std::function<void(const absl::Status&)> done)
    : run_(std::move(run)),
      fabric_(std::move(fabric)),
      crew_(std::move(crew)),
      done_(std::move(done)),
      awaited_(run_.sites.workers.size()) {}

std::vector<net::PeerId> Parcels::Missing() const {
  std::vector<net::PeerId> missing;
  for (size_t site = 0; site < awaited_.size(); ++site) {
    if (awaited_[site].load(std::memory_order_relaxed) > 0) missing.push_back(run_.sites.workers[site]);
  }
  return missing;
}

net::ParcelLabel Parcels::Label(uint64_t part) const {
  return {static_cast<uint64_t>(run_.launch), static_cast<uint64_t>(run_.op->key),
          static_cast<uint64_t>(run_.iteration), static_cast<uint64_t>(run_.group) << 32 | part};
}

void Parcels::Send(int site, uint64_t part, const void* data, size_t size) {
  open_.fetch_add(1, std::memory_order_relaxed);
  fabric_->Send(run_.sites.workers[site], Label(part), data, size,
                [self = shared_from_this()](const absl::Status& status) { self->Ended(status); });
}

void Parcels::Receive(int site, uint64_t part, void* data, size_t size, std::function<void()> then) {
  open_.fetch_add(1, std::memory_order_relaxed);
  awaited_[site].fetch_add(1, std::memory_order_relaxed);
  fabric_->Receive(run_.sites.workers[site], Label(part), data, size,
                   [self = shared_from_this(), site, size, then = std::move(then)](const absl::Status& status) {
                     self->awaited_[site].fetch_sub(1, std::memory_order_relaxed);
                     if (!status.ok()) return self->Ended(status);
                     if (size <= kHandOverBytes) {
                       then();
                       return self->Release();
                     }
                     self->crew_->Hand({Crew::Job{[self, then](const absl::Status&) {
                                                    then();
                                                    self->Release();
                                                  },
                                                  absl::OkStatus()}});
                   });
}

void Parcels::Ended(const absl::Status& status) {
  if (!status.ok()) {
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
  }
  Release();
}

void Parcels::Release() {
  if (open_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = status_;
  }
  std::exchange(done_, nullptr)(status);
  algorithm_.reset();
}

void Parcels::Start() {
  auto self = shared_from_this();
  if (op().kind == Kind::kAllReduce || op().kind == Kind::kReduceScatter) {
    SpanReduction(*this);
  } else {
    SpanMovement(*this);
  }
  Release();
}

std::shared_ptr<SpanningExchange> MakeSpanning(SpanningRun run, std::shared_ptr<net::Fabric> fabric,
                                               std::shared_ptr<Crew> crew,
                                               std::function<void(const absl::Status&)> done) {
  return std::make_shared<Parcels>(std::move(run), std::move(fabric), std::move(crew), std::move(done));
}

}  // namespace gangway::collective
