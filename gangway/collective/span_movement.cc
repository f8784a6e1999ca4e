// Collectives that only move data, between workers. Operands, or of an all-to-all the blocks a worker needs of them,
// travel once to each worker; the members there take what is theirs from the copy.
#include <utility>

#include "gangway/collective/exchange.h"
#include "gangway/collective/move.h"
#include "gangway/collective/parcels.h"

namespace gangway::collective {
namespace {

using Dims = absl::InlinedVector<int64_t, 6>;

class Movement {
 public:
  explicit Movement(Parcels& parcels)
      : parcels_(parcels), run_(parcels.run()), sites_(parcels.sites()), members_(run_.members) {
    copies_.resize(members_.size());
  }

  void Start() {
    const size_t arrays = Local().operands.size();
    for (int site = 0; site < sites_.count(); ++site) {
      if (site == sites_.here) continue;
      for (int rank : sites_.ranks[sites_.here]) {
        if (!Goes(rank, site)) continue;
        for (size_t array = 0; array < arrays; ++array) Send(site, rank, array);
      }
      for (int rank : sites_.ranks[site]) {
        if (Goes(rank, sites_.here)) Expect(site, rank);
      }
    }
    // Only now that `missing_` counts all of them.
    for (const auto& receive : std::exchange(receives_, {})) receive();
    Arrived();
  }

 private:
  const Member& Local() const { return members_[sites_.ranks[sites_.here].front()]; }
  uint64_t Part(int rank, size_t array) const { return static_cast<uint64_t>(rank) * Local().operands.size() + array; }

  // Whether members at `site` need the operand of `rank`.
  bool Goes(int rank, int site) const {
    const Op& op = *run_.op;
    if (op.kind == Kind::kBroadcast) return rank == 0;
    if (op.kind != Kind::kPermute) return true;
    for (int target : sites_.ranks[site]) {
      if (op.source_of[op.groups[run_.group][target]] == op.groups[run_.group][rank]) return true;
    }
    return false;
  }

  // What of an operand a site needs: of an all-to-all the blocks of its ranks, one after the other along the dimension.
  Dims DimsFor(int site, const Array& operand) const {
    Dims dims = operand.dims;
    if (run_.op->kind == Kind::kAllToAll) {
      int64_t& dim = dims[run_.op->dimension];
      dim = dim / static_cast<int64_t>(members_.size()) * static_cast<int64_t>(sites_.ranks[site].size());
    }
    return dims;
  }

  Array Copy(const Array& like, Dims dims) {
    Array copy{like.dtype, std::move(dims), nullptr};
    memory_.emplace_back(new char[PackedBytes(copy.dtype, ElementCount(copy)) + 1]);
    copy.data = memory_.back().get();
    return copy;
  }

  void Send(int site, int rank, size_t array) {
    Array sent = members_[rank].operands[array];
    if (run_.op->kind == Kind::kAllToAll) {
      const Array whole = sent;
      sent = Copy(whole, DimsFor(site, whole));
      Dims extent = whole.dims;
      extent[run_.op->dimension] /= static_cast<int64_t>(members_.size());
      Dims from(extent.size(), 0), to(extent.size(), 0);
      for (int target : sites_.ranks[site]) {
        from[run_.op->dimension] = target * extent[run_.op->dimension];
        CopyBlock(sent, to, whole, from, extent);
        to[run_.op->dimension] += extent[run_.op->dimension];
      }
    }
    parcels_.Send(site, Part(rank, array), sent.data, PackedBytes(sent.dtype, ElementCount(sent)));
  }

  void Expect(int site, int rank) {
    const Member& local = Local();
    for (size_t array = 0; array < local.operands.size(); ++array) {
      copies_[rank].push_back(Copy(local.operands[array], DimsFor(sites_.here, local.operands[array])));
      ++missing_;
      const Array& copy = copies_[rank].back();
      receives_.push_back(
          [this, site, part = Part(rank, array), data = copy.data, size = PackedBytes(copy.dtype, ElementCount(copy))] {
            parcels_.Receive(site, part, data, size, [this] { Arrived(); });
          });
    }
    members_[rank].operands = copies_[rank];
  }

  void Arrived() {
    if (--missing_ > 0) return;
    if (run_.op->kind == Kind::kAllToAll) {
      for (size_t array = 0; array < Local().operands.size(); ++array) JoinBlocks(array);
    } else {
      Exchange(*run_.op, run_.group, members_, 0, 1);
    }
  }

  void JoinBlocks(size_t array) {
    const Op& op = *run_.op;
    Dims extent = Local().operands[array].dims;
    extent[op.dimension] /= static_cast<int64_t>(members_.size());
    const std::vector<int>& targets = sites_.ranks[sites_.here];
    for (size_t t = 0; t < targets.size(); ++t) {
      Dims to(extent.size(), 0);
      for (size_t source = 0; source < members_.size(); ++source) {
        const bool whole = copies_[source].empty();  // a copy holds the blocks of the targets only
        Dims from(extent.size(), 0);
        from[op.dimension] = (whole ? targets[t] : static_cast<int64_t>(t)) * extent[op.dimension];
        CopyBlock(members_[targets[t]].results[array], to, members_[source].operands[array], from, extent);
        to[op.concat_dimension] += extent[op.concat_dimension];
      }
    }
  }

  Parcels& parcels_;  // keeps us
  const SpanningRun& run_;
  const Sites& sites_;
  absl::InlinedVector<Member, 8> members_;
  std::vector<absl::InlinedVector<Array, 1>> copies_;  // by rank: operands from other workers
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<std::function<void()>> receives_;
  std::atomic<int> missing_ = 1;
};

}  // namespace

void SpanMovement(Parcels& parcels) {
  auto movement = std::make_shared<Movement>(parcels);
  parcels.Keep(movement);
  movement->Start();
}

}  // namespace gangway::collective
