#include "tests/equivalence/minimize.h"

#include <utility>
#include <vector>

#include "gangway/hlo/builder.h"
#include "gangway/hlo/verifier.h"

namespace gangway::equivalence {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

class Minimizer {
 public:
  Minimizer(const hlo::Module& module, const StillFails& still_fails, int max_tries)
      : best_(module.Clone()), still_fails_(still_fails), tries_(max_tries) {}

  std::unique_ptr<hlo::Module> Run() {
    while (FewerResults() | FewerInstructions() | FewerAnnotations()) {
    }
    return std::move(best_);
  }

 private:
  // Keeps the candidate when it is sound and still fails.
  bool Try(std::unique_ptr<hlo::Module> candidate) {
    if (tries_ <= 0) return false;
    for (const auto& computation : candidate->computations()) {
      computation->RemoveDead();
      computation->SortTopologically();
    }
    candidate->RemoveUnreachable();
    candidate->SortComputations();
    if (!hlo::Verify(*candidate).ok()) return false;
    --tries_;
    if (!still_fails_(*candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool FewerResults() {
    bool changed = false;
    for (int64_t i = 0; i < ResultCount(); ++i) {
      std::unique_ptr<hlo::Module> candidate = best_->Clone();
      Computation& entry = *candidate->entry();
      if (entry.root()->opcode() != Opcode::kTuple || entry.root()->operand_count() < 2) return changed;
      std::vector<Instruction*> results = entry.root()->operands();
      results.erase(results.begin() + i);
      std::optional<Shardings> shardings = entry.root()->shardings();
      if (shardings) shardings->erase(shardings->begin() + i);
      entry.set_root(hlo::Builder(&entry).Tuple(std::move(results)));
      entry.root()->set_shardings(std::move(shardings));
      if (Try(std::move(candidate))) {
        changed = true;
        --i;
      }
    }
    return changed;
  }
  int64_t ResultCount() const { return best_->entry()->root()->operand_count(); }

  // Instructions by number, last first: users go before what they use.
  bool FewerInstructions() {
    bool changed = false;
    for (size_t c = best_->computations().size(); c-- > 0;) {
      if (c >= best_->computations().size()) continue;
      for (int64_t i = best_->computations()[c]->size(); i-- > 0;) {
        if (c >= best_->computations().size() || i >= best_->computations()[c]->size()) continue;
        changed |= Replace(c, i);
      }
    }
    return changed;
  }

  bool Replace(size_t computation, int64_t number) {
    const Instruction& old = *best_->computations()[computation]->instructions()[number];
    if (old.opcode() == Opcode::kConstant || old.opcode() == Opcode::kTuple || !old.shape().IsArray()) return false;
    for (int64_t k = 0; k < old.operand_count(); ++k) {
      if (!Shape::Compatible(old.operand(k)->shape(), old.shape())) continue;
      if (TryReplacing(computation, number, [k](Instruction* i) { return i->operand(k); })) return true;
    }
    if (old.opcode() == Opcode::kParameter && old.users().empty()) return false;
    return TryReplacing(computation, number,
                        [](Instruction* i) { return hlo::Builder(i->parent()).Splat(WithoutLayout(i->shape()), 1); });
  }

  template <typename Make>
  bool TryReplacing(size_t computation, int64_t number, Make make) {
    std::unique_ptr<hlo::Module> candidate = best_->Clone();
    Instruction* i = candidate->computations()[computation]->instructions()[number].get();
    Instruction* with = make(i);
    if (with->opcode() == Opcode::kBroadcast && i->opcode() == Opcode::kBroadcast &&
        i->operand(0)->opcode() == Opcode::kConstant) {
      return false;  // it is a constant already
    }
    i->ReplaceAllUsesWith(with);
    return Try(std::move(candidate));
  }

  bool FewerAnnotations() {
    bool changed = false;
    for (size_t c = 0; c < best_->computations().size(); ++c) {
      for (int64_t i = 0; i < best_->computations()[c]->size(); ++i) changed |= Plainer(c, i);
    }
    return changed;
  }

  // Without sharding, or with one axis list of it empty.
  bool Plainer(size_t computation, int64_t number) {
    const Instruction& old = *best_->computations()[computation]->instructions()[number];
    if (!old.has_sharding()) return false;
    if (old.opcode() != Opcode::kCustomCall && Resharded(computation, number, std::nullopt)) return true;
    for (size_t leaf = 0; leaf < old.shardings()->size(); ++leaf) {
      for (size_t d = 0; d < (*old.shardings())[leaf].dims.size(); ++d) {
        if ((*old.shardings())[leaf].dims[d].axes.empty()) continue;
        Shardings plainer = *old.shardings();
        plainer[leaf].dims[d].axes.clear();
        if (Resharded(computation, number, std::move(plainer))) return true;
      }
    }
    return false;
  }

  bool Resharded(size_t computation, int64_t number, std::optional<Shardings> shardings) {
    std::unique_ptr<hlo::Module> candidate = best_->Clone();
    candidate->computations()[computation]->instructions()[number]->set_shardings(std::move(shardings));
    return Try(std::move(candidate));
  }

  std::unique_ptr<hlo::Module> best_;
  const StillFails& still_fails_;
  int tries_;
};

}  // namespace

std::unique_ptr<hlo::Module> Minimize(const hlo::Module& module, const StillFails& still_fails, int max_tries) {
  return Minimizer(module, still_fails, max_tries).Run();
}

}  // namespace gangway::equivalence
