#include "gangway/compile/gather_again.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gangway/cost/fusion.h"
#include "gangway/cost/peak_memory.h"
#include "gangway/hlo/channel.h"

namespace gangway::compile {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Compilers take more than is estimated, by a fifth of it at times: they keep copies, and leave gaps between values.
constexpr std::pair<int64_t, int64_t> kMargin = {4, 5};

// Costs next to nothing beside the gather whose result it takes.
bool IsCast(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kConvert:
    case Opcode::kBitcast:
    case Opcode::kBitcastConvert:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kCopy:
      return true;
    default:
      return false;
  }
}

bool IsGather(const Instruction& i) { return i.opcode() == Opcode::kAllGather && i.control_predecessors().empty(); }

// Several gathers that were made one to take less time.
bool IsCombined(const Instruction& i) {
  return IsGather(i) && i.shape().IsTuple() && !i.users().empty() &&
         std::all_of(i.users().begin(), i.users().end(),
                     [](const Instruction* user) { return user->opcode() == Opcode::kGetTupleElement; });
}

constexpr int kMaxCasts = 16;  // one after the other, looked through

// The gather that the value is, or that it was cast from; null when there is none.
const Instruction* GatherOf(const Instruction* i) {
  for (int casts = 0; casts < kMaxCasts && IsCast(*i); ++casts) i = i->operand(0);
  return IsGather(*i) && i->shape().IsArray() ? i : nullptr;
}

// One computation at its fullest moment, and what can be gathered again after it.
class Moment {
 public:
  // `made`: gathers of earlier moments, which are not made yet again; gets those of this one.
  Moment(Computation* computation, absl::flat_hash_set<const Instruction*>* made)
      : computation_(computation), made_(made), fullest_(cost::FullestMomentOf(*computation)) {
    for (int64_t p = 0; p < computation->size(); ++p) place_[computation->instructions()[p].get()] = p;
  }

  // Takes a combined gather apart, so that each array comes when it is wanted; or gathers the value again that takes
  // most. False when there is neither.
  bool Relieve() {
    next_channel_ = hlo::FirstFreeChannel(*computation_->module());
    const Instruction* best = nullptr;
    int64_t most = 0;
    for (const Instruction* value : fullest_.held) {
      if (IsCombined(*value)) {
        TakeApart(*value);
        return true;
      }
      const int64_t freed = Freed(*value);
      if (freed <= most) continue;
      best = value;
      most = freed;
    }
    if (best == nullptr) return false;
    after_ = After(*FirstLateReader(*best));
    Redirect(const_cast<Instruction*>(best));
    Tidy();
    return true;
  }

 private:
  bool IsLate(const Instruction* i) const { return place_.at(i) > fullest_.place; }
  bool IsReadLate(const Instruction* i) const { return fullest_.last_use.at(i) > fullest_.place; }

  // Bytes that are free at the fullest moment when the value is gathered again.
  int64_t Freed(const Instruction& value) const {
    if (!IsReadLate(&value) || place_.at(&value) == fullest_.place || !CanRedirect(value)) return 0;
    return value.shape().ByteSize() - Prolonged(GatherOf(&value)->operand(0));
  }

  // Whether all that reads the value late can be given another one, or a view of it made of another one, and nothing
  // reads it at the moment itself.
  bool CanRedirect(const Instruction& value) const {
    const Instruction* gather = GatherOf(&value);
    if (value.IsRoot() || gather == nullptr || made_->contains(gather)) return false;
    for (const Instruction* user : value.users()) {
      if (IsLate(user)) continue;
      const bool reads = cost::IsMaterialized(*user);  // or its readers do
      if ((reads ? place_.at(user) : fullest_.last_use.at(user)) < fullest_.place) continue;
      if (reads || !CanRedirect(*user)) return false;
    }
    return true;
  }

  // Bytes of a shard that would otherwise not be held at the fullest moment any more.
  int64_t Prolonged(const Instruction* shard) const {
    while (!cost::IsMaterialized(*shard) && shard->operand_count() == 1) shard = shard->operand(0);
    if (shard->opcode() == Opcode::kParameter || fullest_.last_use.at(shard) >= fullest_.place) return 0;
    return shard->shape().ByteSize();
  }

  const Instruction* FirstLateReader(const Instruction& value) const {
    const Instruction* first = nullptr;
    for (const Instruction* user : value.users()) {
      const Instruction* reader = IsLate(user) ? user : IsReadLate(user) ? FirstLateReader(*user) : nullptr;
      if (reader != nullptr && (first == nullptr || place_.at(reader) < place_.at(first))) first = reader;
    }
    return first;
  }

  // What has to be there before the reader can run, the last of it: only then is the value to be gathered.
  Instruction* After(const Instruction& reader) const {
    int64_t last = fullest_.place;
    std::vector<const Instruction*> stack = {&reader};
    absl::flat_hash_set<const Instruction*> seen;
    while (!stack.empty()) {
      const Instruction* top = stack.back();
      stack.pop_back();
      for (const Instruction* operand : top->operands()) {
        if (!IsLate(operand) || !seen.insert(operand).second) continue;
        if (cost::IsMaterialized(*operand)) {
          last = std::max(last, place_.at(operand));
        } else {
          stack.push_back(operand);
        }
      }
    }
    return computation_->instructions()[last].get();
  }

  void Redirect(Instruction* value) {
    const std::vector<Instruction*> users(value->users().begin(), value->users().end());
    for (Instruction* user : users) {
      if (!IsLate(user)) {
        if (!cost::IsMaterialized(*user) && IsReadLate(user)) Redirect(user);
        continue;
      }
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == value) user->ReplaceOperand(o, Again(value));
      }
    }
  }

  // The value made once more, when the fullest moment is over and its first reader could run.
  Instruction* Again(Instruction* value) {
    if (auto it = again_.find(value); it != again_.end()) return it->second;
    if (IsCast(*value)) {
      Instruction* operand = Again(value->operand(0));
      return again_[value] = computation_->AddClone(*value, value->shape(), {operand});
    }
    Instruction* made = Gathered(*value, value->operand(0), value->shape());
    made->AddControlPredecessor(after_);
    made_->insert(made);
    return again_[value] = made;
  }

  void TakeApart(const Instruction& combined) {
    const std::vector<Instruction*> elements(combined.users().begin(), combined.users().end());
    for (Instruction* element : elements) {
      const int64_t index = element->attr<hlo::TupleIndexAttr>().index;
      element->ReplaceAllUsesWith(Gathered(combined, combined.operand(index), element->shape()));
    }
    Tidy();
  }

  // One more gather, of `shard` alone.
  Instruction* Gathered(const Instruction& like, Instruction* shard, const Shape& shape) {
    Instruction* made = computation_->AddClone(like, shape, {shard});
    auto& attr = made->mutable_attr<hlo::CollectiveAttr>();
    if (attr.channel_id.has_value()) attr.channel_id = next_channel_++;
    return made;
  }

  void Tidy() {
    computation_->RemoveDead();  // those, and views, whose readers have others now
    computation_->SortTopologically();
  }

  Computation* const computation_;
  absl::flat_hash_set<const Instruction*>* const made_;
  const cost::FullestMoment fullest_;
  cost::Places place_;
  int64_t next_channel_ = 0;
  Instruction* after_ = nullptr;
  absl::flat_hash_map<const Instruction*, Instruction*> again_;
};

}  // namespace

std::unique_ptr<hlo::Module> GatherAgain(const hlo::Module& module, int64_t memory_bytes) {
  const int64_t room = memory_bytes / kMargin.second * kMargin.first;
  int64_t least = cost::PeakMemoryOf(module).total();
  if (least <= room) return nullptr;
  std::unique_ptr<hlo::Module> best, trial = module.Clone();
  absl::flat_hash_set<const Instruction*> made;
  while (least > room && Moment(trial->entry(), &made).Relieve()) {
    const int64_t bytes = cost::PeakMemoryOf(*trial).total();
    if (bytes >= least) continue;  // another moment may be as full
    least = bytes;
    best = trial->Clone();
  }
  return best;
}

}  // namespace gangway::compile
