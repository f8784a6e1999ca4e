#include "gangway/explain/remedy.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/amounts.h"
#include "gangway/base/status.h"
#include "gangway/compile/records.h"
#include "gangway/cost/module_cost.h"
#include "gangway/explain/candidates.h"
#include "gangway/explain/collect.h"
#include "gangway/explain/spec.h"

namespace gangway::explain {
namespace {

using hlo::Instruction;
using partition::Reason;
using Clock = std::chrono::steady_clock;

std::string WhereOf(const Candidate& candidate, const Program& program) {
  const Place place = program.PlaceOf(candidate.instruction);
  const Instruction* instruction = program.Find(candidate.instruction);
  if (instruction->opcode() == hlo::Opcode::kParameter) return absl::StrCat("argument ", place.ToString());
  return absl::StrCat("with_sharding_constraint on the result of ", place.ToString());
}

// Who wanted which array moved how: the same collective in two compilations.
using Identity = std::set<std::pair<std::string, std::string>>;

Identity IdentityOf(const Collective& collective) {
  Identity identity;
  for (const Cause& cause : collective.causes) identity.emplace(cause.wanted_by.instruction, cause.value.instruction);
  return identity;
}

bool IsGone(const Collective& collective, const std::vector<Collective>& now) {
  const Identity wanted = IdentityOf(collective);
  return std::none_of(now.begin(), now.end(), [&](const Collective& other) {
    if (other.kind != collective.kind) return false;
    const Identity identity = IdentityOf(other);
    return std::any_of(wanted.begin(), wanted.end(), [&](const auto& cause) { return identity.count(cause) > 0; });
  });
}

struct Trial {
  double bytes = 0;
  double seconds = 0;  // modelled
  std::vector<Collective> collectives;
};

absl::StatusOr<Trial> Try(const Candidate& candidate, const hlo::Module& cleaned, const ExplainOptions& options) {
  std::unique_ptr<hlo::Module> module = cleaned.Clone();
  for (const auto& computation : module->computations()) {
    for (const auto& instruction : computation->instructions()) {
      if (instruction->name() == candidate.instruction) instruction->set_shardings(Shardings{candidate.sharding});
    }
  }
  compile::Records records;
  compile::CompileOptions compile = options.compile;
  compile.records = &records;
  compile.host_collectives = false;
  GW_ASSIGN_OR_RETURN(const compile::CompiledProgram compiled, compile::CompileModule(std::move(module), compile));
  const Program program(cleaned, records.propagation);
  Trial trial;
  trial.collectives = Collectives(*compiled.per_device, program, records.reasons, options.machine, 0);
  for (const Collective& collective : trial.collectives) trial.bytes += collective.bytes;
  trial.seconds = cost::EstimateTime(cost::CostOf(*compiled.per_device), options.machine).total();
  return trial;
}

// What pays goes first, then what receives less.
bool IsBetter(const Remedy& a, const Remedy& b) {
  if (a.pays() != b.pays()) return a.pays();
  return a.bytes_after != b.bytes_after ? a.bytes_after < b.bytes_after : a.seconds_after < b.seconds_after;
}

}  // namespace

std::string Remedy::PriceText() const {
  std::string text =
      absl::StrCat("the program then receives ", BytesText(bytes_after), " instead of ", BytesText(bytes_before));
  if (!pays() || bytes_after == bytes_before)
    absl::StrAppend(&text, ", ", SecondsText(seconds_after), " modelled instead of ", SecondsText(seconds_before));
  return text;
}

void FindRemedies(const hlo::Module& cleaned, const Program& program, const std::vector<Reason>& reasons,
                  const ExplainOptions& options, const Budget& budget, const Explanation& now,
                  std::vector<Collective>* collectives) {
  const auto wanted = [&](const Collective& collective) {
    const std::vector<std::string>& names = options.remedies_for;
    return names.empty() || std::find(names.begin(), names.end(), collective.name) != names.end();
  };
  for (Collective& collective : *collectives) {
    if (!wanted(collective)) continue;
    for (const Cause& cause : collective.causes) {
      if (!cause.reason.has_value()) continue;  // the user's own: no annotation changes that
      for (const Candidate& candidate : CandidatesFor(reasons[*cause.reason], program)) {
        if (Clock::now() + budget.trial >= budget.end) return;
        const absl::StatusOr<Trial> trial = Try(candidate, cleaned, options);
        // One that comes back elsewhere is not removed.
        if (!trial.ok() || !IsGone(collective, trial->collectives)) continue;
        const Remedy remedy{program.PlaceOf(candidate.instruction),
                            SpecOf(candidate.sharding),
                            WhereOf(candidate, program),
                            now.bytes,
                            trial->bytes,
                            now.seconds,
                            trial->seconds};
        if (!collective.remedy.has_value() || IsBetter(remedy, *collective.remedy)) collective.remedy = remedy;
      }
    }
    collective.remedies_tried = true;
  }
}

}  // namespace gangway::explain
