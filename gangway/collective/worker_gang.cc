#include "gangway/collective/worker_gang.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/algorithm/container.h"
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
struct WorkerGang::SharedWork {
  std::unique_ptr<Meeting> meeting;
  std::atomic<int> pieces_left;

  SharedWork(std::unique_ptr<Meeting> meeting, int pieces) : meeting(std::move(meeting)), pieces_left(pieces) {}
};

WorkerGang::WorkerGang(Launch launch, std::shared_ptr<Crew> crew, std::shared_ptr<net::Fabric> fabric,
                       const Clock& clock)
    : launch_(std::move(launch)), crew_(std::move(crew)), fabric_(std::move(fabric)), clock_(clock) {}

WorkerGang::~WorkerGang() {
  bool waiting = false;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, state] : ops_) {
      for (const auto& group : state.open) waiting |= !group.empty();
    }
  }
  if (waiting) Poison(absl::CancelledError("the launch was dropped"));
}

void WorkerGang::Join(int participant, std::shared_ptr<const Op> op, Contribution contribution) {
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

std::unique_ptr<WorkerGang::Meeting> WorkerGang::Arrive(int participant, const std::shared_ptr<const Op>& op,
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
    meeting->expected = LocalMembers(*op, group);
    at = open.insert(open.end(), std::move(meeting));
  }
  Meeting& meeting = **at;
  meeting.contributions[op->rank_of[participant]] = std::move(contribution);
  if (++meeting.arrived < meeting.expected) return nullptr;
  std::unique_ptr<Meeting> complete = std::move(*at);
  open.erase(at);
  return complete;
}

int WorkerGang::LocalMembers(const Op& op, int group) const {
  const std::vector<int>& members = op.groups[group];
  if (fabric_ == nullptr) return static_cast<int>(members.size());
  const net::PeerId self = fabric_->self();
  return static_cast<int>(
      std::count_if(members.begin(), members.end(), [&](int member) { return launch_.owners[member] == self; }));
}

void WorkerGang::Hold(std::unique_ptr<Meeting> meeting, int last_rank) {
  if (Spans(*meeting)) return Span(std::move(meeting));
  const auto members = Members(meeting->contributions);
  if (absl::Status status = CheckExchange(*meeting->op, members); !status.ok()) {
    status = Annotate(status, absl::StrCat("program ", launch_.program));
    Poison(status);
    return Finish(std::move(meeting), status, last_rank);
  }
  const int pieces = ExchangePieces(members, crew_->threads());
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

// The local members are checked among themselves; those of other workers run the same program.
void WorkerGang::Span(std::unique_ptr<Meeting> meeting) {
  SpanningRun run;
  run.op = meeting->op;
  run.group = meeting->group;
  run.launch = launch_.id;
  run.iteration = meeting->iteration;
  run.sites = SitesOf(*run.op, run.group, launch_.owners, fabric_->self());
  run.members = Members(meeting->contributions);
  absl::InlinedVector<Member, 8> local;
  for (int rank : run.sites.ranks[run.sites.here]) local.push_back(run.members[rank]);
  absl::Status status = CheckMembers(*run.op, local, static_cast<int64_t>(run.members.size()));
  if (!status.ok()) {
    status = Annotate(status, absl::StrCat("program ", launch_.program));
    Poison(status);
    return Finish(std::move(meeting), status, -1);
  }
  const absl::Time start = meeting->start;
  auto op = meeting->op;
  auto shared = std::make_shared<std::unique_ptr<Meeting>>(std::move(meeting));
  std::shared_ptr<SpanningExchange> exchange;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t id = next_spanning_++;
    // The members' launches hold the gang until they are completed.
    exchange = MakeSpanning(std::move(run), fabric_, crew_, [this, shared, id](const absl::Status& outcome) {
      EndSpan(id, std::move(*shared), outcome);
    });
    spanning_[id] = {std::move(op), start, exchange};
  }
  auto crew = crew_;
  auto fabric = fabric_;
  exchange->Start();  // may end at once, and the gang with it
  crew->SentFor(std::move(fabric));
}

void WorkerGang::LookOut(absl::FunctionRef<bool()> enough) {
  if (fabric_ != nullptr) crew_->LookOut(enough);
}

void WorkerGang::EndSpan(int64_t id, std::unique_ptr<Meeting> meeting, absl::Status status) {
  absl::Status earlier;
  std::shared_ptr<SpanningExchange> ended;  // goes without the lock
  {
    absl::MutexLock lock(&mutex_);
    ended = std::move(spanning_[id].exchange);
    spanning_.erase(id);
    earlier = status_;
  }
  if (!earlier.ok()) {
    status = earlier;
  } else if (!status.ok()) {
    status = Annotate(status, absl::StrCat("program ", launch_.program));
    Poison(status);
  }
  absl::InlinedVector<Crew::Job, 8> jobs;
  for (Contribution& contribution : meeting->contributions) {
    if (contribution.done != nullptr) jobs.push_back({std::move(contribution.done), status});
  }
  std::shared_ptr<Crew> crew = crew_;
  meeting.reset();
  crew->Hand(std::move(jobs));  // this thread is the network's and must not run programs
}

void WorkerGang::Finish(std::unique_ptr<Meeting> meeting, const absl::Status& status, int first_rank) {
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

void WorkerGang::Poison(const absl::Status& status) {
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
  if (fabric_ != nullptr) fabric_->Abandon(static_cast<uint64_t>(launch_.id), first);
  for (auto& meeting : open) Finish(std::move(meeting), first, -1);
}

absl::Status WorkerGang::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

std::string WorkerGang::NamesOf(absl::Span<const int> participants) const {
  const size_t named = std::min(participants.size(), kMostNamed);
  auto name = [this](std::string* out, int participant) { out->append(launch_.participants[participant]); };
  return absl::StrCat(absl::StrJoin(participants.first(named), ", ", name),
                      participants.size() > named ? absl::StrCat(" and ", participants.size() - named, " more") : "");
}

std::vector<int> WorkerGang::Missing(const Meeting& meeting) const {
  std::vector<int> missing;
  const std::vector<int>& group = meeting.op->groups[meeting.group];
  for (size_t rank = 0; rank < group.size(); ++rank) {
    const bool local = fabric_ == nullptr || launch_.owners[group[rank]] == fabric_->self();
    if (local && meeting.contributions[rank].done == nullptr) missing.push_back(group[rank]);
  }
  return missing;
}

std::vector<int> WorkerGang::Missing(const Spanning& spanning) const {
  const std::vector<net::PeerId> workers = spanning.exchange->Missing();
  std::vector<int> missing;
  for (size_t p = 0; p < launch_.owners.size(); ++p) {
    if (absl::c_linear_search(workers, launch_.owners[p])) missing.push_back(static_cast<int>(p));
  }
  return missing;
}

std::string WorkerGang::DescribeWait(const Op& op, absl::Time start, absl::Span<const int> missing) const {
  return absl::StrCat("program ", launch_.program, ", launch ", launch_.id, ": ", op.ToString(), " waited ",
                      absl::FormatDuration(clock_.Now() - start), " for ", NamesOf(missing));
}

void WorkerGang::ExpireBefore(absl::Time start) {
  std::string wait;
  {
    absl::MutexLock lock(&mutex_);
    if (last_arrival_ >= start) return;
    for (const auto& [key, state] : ops_) {
      for (const auto& group : state.open) {
        for (const auto& meeting : group) wait = DescribeWait(*meeting->op, meeting->start, Missing(*meeting));
      }
    }
    for (const auto& [id, spanning] : spanning_) wait = DescribeWait(*spanning.op, spanning.start, Missing(spanning));
  }
  if (!wait.empty()) Poison(absl::DeadlineExceededError(wait));
}

}  // namespace gangway::collective
