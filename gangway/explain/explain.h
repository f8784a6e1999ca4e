// Why a program communicates: every collective of the partitioned program with what it costs, who wanted it, where the
// shardings it lies between come from, and which annotation would remove it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/compile/compile.h"
#include "gangway/cost/machine.h"
#include "gangway/hlo/module.h"

namespace gangway::explain {

// A place in the user's program.
struct Place {
  std::string instruction;  // of the whole program
  std::string op_name;      // "jit(step)/layer/dot_general"
  std::string file;
  int line = 0;

  std::string ToString() const;  // "dot_general (model.py:12)", the instruction where JAX told nothing
};

// How one dimension came to be split: from the annotation, through the operations that handed it on, to here.
struct Path {
  int64_t dim = 0;
  std::string axes;
  std::vector<Place> places;  // the annotated one first
};

struct Cause {
  std::optional<size_t> reason;  // number of the partitioner's record; none for what the user wrote himself
  Place wanted_by;
  // A reshard has these; otherwise the operation itself communicates (a halo, a sum of candidates) or the user wrote
  // the collective.
  bool is_reshard = false;
  Place value;
  std::string shape;
  std::string from, to;  // as JAX writes them: P('data', None)
  std::vector<Path> from_paths, to_paths;
  std::string plan;
  std::vector<std::pair<std::string, double>> others;  // where it could have started from instead, and the cost
};

// An annotation that was tried: the program was compiled again with it.
struct Remedy {
  Place place;
  std::string spec;         // P('data', None)
  std::string where;        // "parameter x" or "with_sharding_constraint on dot_general (model.py:12)"
  double bytes_before = 0;  // received per device by the whole program
  double bytes_after = 0;
  double seconds_before = 0;  // modelled, of one run
  double seconds_after = 0;

  // "the program then receives 1.00 MiB instead of 3.00 MiB"; with the times where the bytes do not say it.
  std::string PriceText() const;
  // The program is better with it. One that removes the collective at a price has it receive or compute more elsewhere.
  bool pays() const {
    return bytes_after <= bytes_before && seconds_after <= seconds_before &&
           (bytes_after < bytes_before || seconds_after < seconds_before);
  }
};

struct Collective {
  std::string name, kind, computation;
  std::string axes;       // mesh axes it runs along: "'data','model'"
  double executions = 0;  // loop bodies times their trip count, where known
  double bytes = 0;       // received per device, all executions
  double seconds = 0;     // modelled
  double share = 0;       // of the program's modelled time
  std::vector<Cause> causes;
  std::optional<Remedy> remedy;  // the best one that removes it, perhaps at a price
  bool remedies_tried = false;   // all that there are: without a remedy none of them removes it
};

struct Tensor {
  Place place;
  std::string shape, sharding;
  int64_t bytes = 0, bytes_per_device = 0;
  std::vector<Path> paths;
};

struct Explanation {
  std::string program, mesh, machine;
  int64_t devices = 1;
  double bytes = 0;                     // received per device, all collectives
  double seconds = 0;                   // modelled, of one run
  std::vector<Collective> collectives;  // the dearest first
  std::vector<Tensor> inputs, outputs;  // leaves of the parameters and of the result, in order; without paths
  std::vector<Tensor> tensors;          // the largest first
  std::vector<compile::ReplicatedFallback> fallbacks;
  std::vector<std::string> conflicts;  // annotations and choices that could not both hold
};

// `spec` on the result of an instruction, as if the user had written it there.
struct Annotation {
  std::string instruction;  // as explanations name it
  std::string spec;         // P('data', None)
};

struct ExplainOptions {
  compile::CompileOptions compile;
  std::vector<Annotation> annotations;  // added to the program's own before anything else
  cost::Machine machine;
  int64_t min_tensor_bytes = 1 << 20;
  int64_t max_tensors = 50;
  // Of the whole explanation: later no annotation is tried. The dearest collectives are tried first.
  double remedy_seconds = 1.5;
  std::vector<std::string> remedies_for;  // the collectives for which remedies are looked for; empty: all
};

// Takes the module as the user wrote it. Errors are those of compilation; NOT_FOUND and INVALID_ARGUMENT name an
// annotation that does not fit.
absl::StatusOr<Explanation> Explain(std::unique_ptr<hlo::Module> module, const ExplainOptions& options);

// The largest of the tensors that every device holds in full; null when there is none.
const Tensor* LargestReplicated(const Explanation& explanation);

std::string ToText(const Explanation& explanation);
std::string ToJson(const Explanation& explanation);
// One page that needs nothing else: no script or style from outside.
std::string ToHtml(const Explanation& explanation);

}  // namespace gangway::explain
