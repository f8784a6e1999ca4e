// A collective whose group has members on several workers: what is local is combined here, the rest travels by the
// fabric, straight from owner to owner.
//
// Sums are taken inside each worker in rank order and then over the workers in the order of their first ranks, in
// AccumulatorOf the type and rounded once: the same bits on every member, on every run and for every algorithm below.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "gangway/collective/crew.h"
#include "gangway/collective/exchange.h"
#include "gangway/collective/gang.h"
#include "gangway/collective/op.h"
#include "gangway/net/fabric.h"

namespace gangway::collective {

// The workers of a group, in the order of their first ranks, and whose ranks are where.
struct Sites {
  std::vector<net::PeerId> workers;
  std::vector<std::vector<int>> ranks;  // by site, ascending
  int here = 0;                         // this worker's place

  int count() const { return static_cast<int>(workers.size()); }
};
// `owners`: by participant.
Sites SitesOf(const Op& op, int group, absl::Span<const net::PeerId> owners, net::PeerId self);

// One run of one collective by one group, complete as far as this worker's members are concerned.
struct SpanningRun {
  std::shared_ptr<const Op> op;
  int group = 0;
  int64_t launch = 0;
  int64_t iteration = 0;
  Sites sites;
  absl::InlinedVector<Member, 8> members;  // by rank; those of other workers are empty
};

// Thread-safe.
class SpanningExchange {
 public:
  virtual ~SpanningExchange() = default;
  // Once. `done` is called once, on any thread, possibly before this returns; the members' memory stays valid until
  // then. It ends early when the fabric abandons the launch or loses a worker.
  virtual void Start() = 0;
  // The workers it still waits for.
  virtual std::vector<net::PeerId> Missing() const = 0;
};

std::shared_ptr<SpanningExchange> MakeSpanning(SpanningRun run, std::shared_ptr<net::Fabric> fabric,
                                               std::shared_ptr<Crew> crew,
                                               std::function<void(const absl::Status&)> done);

}  // namespace gangway::collective
