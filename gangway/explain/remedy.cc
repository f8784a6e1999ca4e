#include "gangway/explain/remedy.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/compile/records.h"
#include "gangway/explain/collect.h"
#include "gangway/explain/spec.h"

namespace gangway::explain {
namespace {

using hlo::Instruction;
using partition::Reason;
using Clock = std::chrono::steady_clock;

// A sharding for one instruction of the whole program.
struct Candidate {
  std::string instruction;
  Sharding sharding;
};

Sharding AsAnnotation(Sharding sharding) {
  sharding.unreduced.clear();
  return sharding.Closed();
}

void AddCandidate(const Program& program, absl::string_view name, const Sharding& sharding, const Shape& shape,
                  std::vector<Candidate>* candidates) {
  const Instruction* instruction = program.Find(name);
  if (instruction == nullptr || !Shape::Compatible(instruction->shape(), shape)) return;
  Candidate candidate{std::string(name), AsAnnotation(sharding)};
  const bool known = std::any_of(candidates->begin(), candidates->end(), [&](const Candidate& other) {
    return other.instruction == candidate.instruction && other.sharding == candidate.sharding;
  });
  if (!known) candidates->push_back(std::move(candidate));
}

// The array as it is wanted, from where it is made or from where its sharding was annotated; or what is made of it left
// as the array lies.
std::vector<Candidate> CandidatesForReshard(const Reason& reason, const Program& program) {
  std::vector<Candidate> candidates;
  AddCandidate(program, reason.value, reason.to, reason.shape, &candidates);
  AddCandidate(program, reason.wanted_by, reason.from, reason.shape, &candidates);
  for (const Path& path : program.PathsOf(reason.value, reason.from)) {
    AddCandidate(program, path.places.front().instruction, reason.to, reason.shape, &candidates);
  }
  for (const Path& path : program.PathsOf(reason.wanted_by, reason.to)) {
    AddCandidate(program, path.places.front().instruction, reason.from, reason.shape, &candidates);
  }
  return candidates;
}

// An operation that needs its neighbours' elements, or a sum of candidates, does not where the dimension is whole.
std::vector<Candidate> CandidatesForOperation(const Reason& reason, const Program& program) {
  std::vector<Candidate> candidates;
  const Instruction* wanted_by = program.Find(reason.wanted_by);
  if (wanted_by == nullptr) return candidates;
  std::vector<const Instruction*> ends(wanted_by->operands().begin(), wanted_by->operands().end());
  ends.push_back(wanted_by);
  for (const Instruction* end : ends) {
    if (!end->shape().IsArray() || !end->has_sharding()) continue;
    for (int64_t dim = 0; dim < end->sharding().rank(); ++dim) {
      if (!end->sharding().IsSplit(dim)) continue;
      Sharding whole = end->sharding();
      whole.dims[dim].axes.clear();
      AddCandidate(program, end->name(), whole, end->shape(), &candidates);
    }
  }
  return candidates;
}

// None for what the user wrote himself: no annotation changes that.
std::vector<Candidate> CandidatesFor(const Cause& cause, const std::vector<Reason>& reasons, const Program& program) {
  if (!cause.reason.has_value()) return {};
  const Reason& reason = reasons[*cause.reason];
  return reason.is_reshard ? CandidatesForReshard(reason, program) : CandidatesForOperation(reason, program);
}

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
  return trial;
}

}  // namespace

void FindRemedies(const hlo::Module& cleaned, const Program& program, const std::vector<Reason>& reasons,
                  const ExplainOptions& options, double bytes, std::vector<Collective>* collectives) {
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.remedy_seconds));
  const auto wanted = [&](const Collective& collective) {
    const std::vector<std::string>& names = options.remedies_for;
    return names.empty() || std::find(names.begin(), names.end(), collective.name) != names.end();
  };
  for (Collective& collective : *collectives) {
    if (!wanted(collective)) continue;
    for (const Cause& cause : collective.causes) {
      for (const Candidate& candidate : CandidatesFor(cause, reasons, program)) {
        if (Clock::now() >= end) return;
        const absl::StatusOr<Trial> trial = Try(candidate, cleaned, options);
        // One that comes back elsewhere is not removed.
        if (!trial.ok() || trial->bytes >= bytes || !IsGone(collective, trial->collectives)) continue;
        if (collective.remedy.has_value() && collective.remedy->bytes_after <= trial->bytes) continue;
        collective.remedy = Remedy{program.PlaceOf(candidate.instruction), SpecOf(candidate.sharding),
                                   WhereOf(candidate, program), bytes, trial->bytes};
      }
    }
    collective.remedies_tried = true;
  }
}

}  // namespace gangway::explain
