// A gang whose participants are all in this process.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "gangway/base/clock.h"
#include "gangway/collective/crew.h"
#include "gangway/collective/gang.h"

namespace gangway::collective {

// Thread-safe. The crew and the clock are shared with the keeper, which may go before the last launch has let go of its
// gang.
class LocalGang final : public Gang {
 public:
  LocalGang(Launch launch, std::shared_ptr<Crew> crew, const Clock& clock);
  ~LocalGang() override;

  const Launch& launch() const override { return launch_; }
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
    std::vector<Contribution> contributions;  // by rank; absent: no `done`
  };
  // A large exchange that several threads share.
  struct SharedWork;
  struct OpState {
    std::vector<int64_t> visits;                              // by participant
    std::vector<std::vector<std::unique_ptr<Meeting>>> open;  // by group, rarely more than one each
  };

  // Takes the contribution; the meeting when it is complete with it.
  std::unique_ptr<Meeting> Arrive(int participant, const std::shared_ptr<const Op>& op, Contribution& contribution)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Hold(std::unique_ptr<Meeting> meeting, int last_rank);
  // Completes all members; `first_rank`, when not negative, at once on this thread: its device goes on by itself.
  void Finish(std::unique_ptr<Meeting> meeting, const absl::Status& status, int first_rank);
  std::string DescribeMissing(const Meeting& meeting) const;

  const Launch launch_;
  const std::shared_ptr<Crew> crew_;
  const Clock& clock_;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_arrival_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int64_t, OpState> ops_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gangway::collective
