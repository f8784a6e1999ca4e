// The sends and receives of one exchange between workers, counted until the last has ended.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gangway/collective/crew.h"
#include "gangway/collective/spanning.h"

namespace gangway::collective {

// Thread-safe. Memory of parcels stays valid until `done`.
class Parcels final : public SpanningExchange, public std::enable_shared_from_this<Parcels> {
 public:
  Parcels(SpanningRun run, std::shared_ptr<net::Fabric> fabric, std::shared_ptr<Crew> crew,
          std::function<void(const absl::Status&)> done);

  const SpanningRun& run() const { return run_; }
  const Sites& sites() const { return run_.sites; }
  const Op& op() const { return *run_.op; }
  void Start() override;
  std::vector<net::PeerId> Missing() const override;

  // What the parcels' memory belongs to; goes with the end of the exchange.
  void Keep(std::shared_ptr<const void> algorithm) { algorithm_ = std::move(algorithm); }

  // `part` is unique among the parcels from one worker to another.
  void Send(int site, uint64_t part, const void* data, size_t size);
  // `then` is called when the bytes are there, and only if they come; a large one's on the crew's threads.
  void Receive(int site, uint64_t part, void* data, size_t size, std::function<void()> then);

 private:
  // The exchange is over when the algorithm has begun everything and all of that has ended.
  void Release();
  net::ParcelLabel Label(uint64_t part) const;
  void Ended(const absl::Status& status);

  const SpanningRun run_;
  const std::shared_ptr<net::Fabric> fabric_;
  const std::shared_ptr<Crew> crew_;
  std::function<void(const absl::Status&)> done_;
  std::shared_ptr<const void> algorithm_;
  std::atomic<int64_t> open_ = 1;
  std::vector<std::atomic<int>> awaited_;  // receives by site
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// The algorithms: each begins its parcels and returns.
void SpanReduction(Parcels& parcels);  // all-reduce, reduce-scatter
void SpanMovement(Parcels& parcels);   // the others

}  // namespace gangway::collective
