#include "gangway/collective/local_gang.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"
#include "gangway/collective/exchange.h"

namespace gangway::collective {
namespace {

constexpr size_t kMostNamed = 8;  // participants listed in a message

absl::Status CheckParticipant(const Launch& launch, int participant, const Op& op) {
  const size_t count = launch.participants.size();
  if (participant < 0 || static_cast<size_t>(participant) >= count || op.group_of.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("program ", launch.program, ", launch ", launch.id, ": ", op.ToString(), " is for ",
                     op.group_of.size(), " partitions; partition ", participant, " of ", count, " called it"));
  }
  return absl::OkStatus();
}

void ZeroResults(const Contribution& contribution) {
  Op op;
  op.kind = Kind::kPermute;
  op.groups = {{0}};
  op.source_of = {-1};
  op.rank_of = {0};
  const Member alone{contribution.operands, contribution.results};
  Exchange(op, 0, {&alone, 1}, 0, 1);
}

absl::InlinedVector<Member, 8> Members(const std::vector<Contribution>& contributions) {
  absl::InlinedVector<Member, 8> members;
  for (const Contribution& c : contributions) members.push_back({c.operands, c.results});
  return members;
}

}  // namespace

// The last thread to finish a piece completes the members, so none waits for another.
struct LocalGang::SharedWork {
  std::unique_ptr<Meeting> meeting;
  std::atomic<int> pieces_left;

  SharedWork(std::unique_ptr<Meeting> meeting, int pieces) : meeting(std::move(meeting)), pieces_left(pieces) {}
};

LocalGang::LocalGang(Launch launch, std::shared_ptr<Crew> crew, const Clock& clock)
    : launch_(std::move(launch)), crew_(std::move(crew)), clock_(clock) {}

LocalGang::~LocalGang() { Poison(absl::CancelledError("the launch was dropped")); }

void LocalGang::Join(int participant, std::shared_ptr<const Op> op, Contribution contribution) {
  absl::Status status = CheckParticipant(launch_, participant, *op);
  if (status.ok() && op->group_of[participant] < 0) {
    ZeroResults(contribution);
    return contribution.done(absl::OkStatus());
  }
  std::unique_ptr<Meeting> complete;
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    status = status_;
    if (status.ok()) complete = Arrive(participant, op, contribution);
  }
  if (!status.ok()) return contribution.done(status);
  if (complete != nullptr) Hold(std::move(complete), op->rank_of[participant]);
}

std::unique_ptr<LocalGang::Meeting> LocalGang::Arrive(int participant, const std::shared_ptr<const Op>& op,
                                                      Contribution& contribution) {
  OpState& state = ops_[op->key];
  if (state.visits.empty()) {
    state.visits.assign(launch_.participants.size(), 0);
    state.open.resize(op->groups.size());
  }
  const int64_t iteration = state.visits[participant]++;
  last_arrival_ = clock_.Now();
  const int group = op->group_of[participant];
  auto& open = state.open[group];
  auto at = open.begin();
  while (at != open.end() && (*at)->iteration != iteration) ++at;
  if (at == open.end()) {
    auto meeting = std::make_unique<Meeting>();
    meeting->op = op;
    meeting->group = group;
    meeting->iteration = iteration;
    meeting->start = last_arrival_;
    meeting->contributions.resize(op->groups[group].size());
    at = open.insert(open.end(), std::move(meeting));
  }
  Meeting& meeting = **at;
  meeting.contributions[op->rank_of[participant]] = std::move(contribution);
  if (++meeting.arrived < static_cast<int>(meeting.contributions.size())) return nullptr;
  std::unique_ptr<Meeting> complete = std::move(*at);
  open.erase(at);
  return complete;
}

void LocalGang::Hold(std::unique_ptr<Meeting> meeting, int last_rank) {
  const auto members = Members(meeting->contributions);
  if (absl::Status status = CheckExchange(*meeting->op, members); !status.ok()) {
    status = Annotate(status, absl::StrCat("program ", launch_.program));
    Poison(status);
    return Finish(std::move(meeting), status, last_rank);
  }
  const int pieces = ExchangePieces(*meeting->op, members, crew_->threads());
  if (pieces == 1) {
    Exchange(*meeting->op, meeting->group, members, 0, 1);
    return Finish(std::move(meeting), absl::OkStatus(), last_rank);
  }
  auto shared = std::make_shared<SharedWork>(std::move(meeting), pieces);
  absl::InlinedVector<Crew::Job, 8> jobs;
  for (int piece = 0; piece < pieces; ++piece) {
    // The members' launches hold the gang until they are completed, which the last piece does.
    jobs.push_back({[this, shared, piece, pieces](const absl::Status&) {
                      const Meeting& meeting = *shared->meeting;
                      Exchange(*meeting.op, meeting.group, Members(meeting.contributions), piece, pieces);
                      if (--shared->pieces_left == 0) Finish(std::move(shared->meeting), absl::OkStatus(), -1);
                    },
                    absl::OkStatus()});
  }
  crew_->Run(std::move(jobs), /*spread=*/true);
}

void LocalGang::Finish(std::unique_ptr<Meeting> meeting, const absl::Status& status, int first_rank) {
  if (first_rank >= 0) std::exchange(meeting->contributions[first_rank].done, nullptr)(status);
  absl::InlinedVector<Crew::Job, 8> jobs;
  for (Contribution& contribution : meeting->contributions) {
    if (contribution.done != nullptr) jobs.push_back({std::move(contribution.done), status});
  }
  // Completing the last member may drop the gang itself: nothing of it is used below.
  std::shared_ptr<Crew> crew = crew_;
  meeting.reset();
  crew->Run(std::move(jobs), /*spread=*/false);
}

void LocalGang::Poison(const absl::Status& status) {
  std::vector<std::unique_ptr<Meeting>> open;
  absl::Status first;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    first = status_ = status;
    for (auto& [key, state] : ops_) {
      for (auto& group : state.open) {
        for (auto& meeting : group) open.push_back(std::move(meeting));
        group.clear();
      }
    }
  }
  for (auto& meeting : open) Finish(std::move(meeting), first, -1);
}

absl::Status LocalGang::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

std::string LocalGang::DescribeMissing(const Meeting& meeting) const {
  std::vector<std::string> missing;
  size_t more = 0;
  const std::vector<int>& group = meeting.op->groups[meeting.group];
  for (size_t rank = 0; rank < group.size(); ++rank) {
    if (meeting.contributions[rank].done != nullptr) continue;
    if (missing.size() < kMostNamed) {
      missing.push_back(launch_.participants[group[rank]]);
    } else {
      ++more;
    }
  }
  return absl::StrCat(absl::StrJoin(missing, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

void LocalGang::ExpireBefore(absl::Time start) {
  absl::Status expired;
  {
    absl::MutexLock lock(&mutex_);
    if (last_arrival_ >= start) return;
    for (const auto& [key, state] : ops_) {
      for (const auto& group : state.open) {
        for (const auto& meeting : group) {
          expired = absl::DeadlineExceededError(absl::StrCat(
              "program ", launch_.program, ", launch ", launch_.id, ": ", meeting->op->ToString(), " waited ",
              absl::FormatDuration(clock_.Now() - meeting->start), " for ", DescribeMissing(*meeting)));
        }
      }
    }
  }
  if (!expired.ok()) Poison(expired);
}

}  // namespace gangway::collective
