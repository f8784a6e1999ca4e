// One worker's part of a gang: its participants meet here; those of other workers are reached by the fabric.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "gangway/base/clock.h"
#include "gangway/collective/crew.h"
#include "gangway/collective/gang.h"
#include "gangway/collective/spanning.h"

namespace gangway::collective {

// Thread-safe. The crew and the clock are shared with the keeper, which may go before the last launch has let go of its
// gang.
class WorkerGang final : public Gang {
 public:
  // `fabric` is null when all participants are in this process.
  WorkerGang(Launch launch, std::shared_ptr<Crew> crew, std::shared_ptr<net::Fabric> fabric, const Clock& clock);
  ~WorkerGang() override;

  const Launch& launch() const override { return launch_; }
  void LookOut(absl::FunctionRef<bool()> enough) override;
  void Join(int participant, std::shared_ptr<const Op> op, Contribution contribution) override;
  void Poison(const absl::Status& status) override;
  absl::Status status() const override;

  // Poisons the gang with DEADLINE_EXCEEDED when a collective waits and nobody has come to any since `start`, naming
  // who is missing.
  void ExpireBefore(absl::Time start);

 private:
  // One run of one collective by one group.
  struct Meeting {
    std::shared_ptr<const Op> op;
    int group = 0;
    int64_t iteration = 0;
    absl::Time start;
    int arrived = 0;
    int expected = 0;                         // members of this worker
    std::vector<Contribution> contributions;  // by rank; absent, or another worker's: no `done`
  };
  // A large exchange that several threads share.
  struct SharedWork;
  struct OpState {
    std::vector<int64_t> visits;                              // by participant
    std::vector<std::vector<std::unique_ptr<Meeting>>> open;  // by group, rarely more than one each
  };
  // One that goes on between workers.
  struct Spanning {
    std::shared_ptr<const Op> op;
    absl::Time start;
    std::shared_ptr<SpanningExchange> exchange;
  };

  // Takes the contribution; the meeting when it is complete with it.
  std::unique_ptr<Meeting> Arrive(int participant, const std::shared_ptr<const Op>& op, Contribution& contribution)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Hold(std::unique_ptr<Meeting> meeting, int last_rank);
  bool Spans(const Meeting& meeting) const { return meeting.expected < static_cast<int>(meeting.contributions.size()); }
  void Span(std::unique_ptr<Meeting> meeting);
  void EndSpan(int64_t id, std::unique_ptr<Meeting> meeting, absl::Status status);
  int LocalMembers(const Op& op, int group) const;
  // Completes all members; `first_rank`, when not negative, at once on this thread: its device goes on by itself.
  void Finish(std::unique_ptr<Meeting> meeting, const absl::Status& status, int first_rank);
  // The participants an exchange waits for.
  std::vector<int> Missing(const Meeting& meeting) const;
  std::vector<int> Missing(const Spanning& spanning) const;
  std::string NamesOf(absl::Span<const int> participants) const;
  std::string DescribeWait(const Op& op, absl::Time start, absl::Span<const int> missing) const;

  const Launch launch_;
  const std::shared_ptr<Crew> crew_;
  const std::shared_ptr<net::Fabric> fabric_;
  const Clock& clock_;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_arrival_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, OpState> ops_ ABSL_GUARDED_BY(mutex_);
  // By an own count.
  absl::flat_hash_map<int64_t, Spanning> spanning_ ABSL_GUARDED_BY(mutex_);
  int64_t next_spanning_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gangway::collective
