// Clean-up passes over a module: what a program needs after import and after partitioning. One file per pass.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/hlo/module.h"

namespace gangway::passes {

// Each takes a module that passes hlo::Verify, leaves one that does and computes the same, and says whether it changed
// anything. Instructions stay in topological order.

// Instructions nobody uses and computations nobody calls.
absl::StatusOr<bool> RunDce(hlo::Module& module);
// Of equal instructions with equal operands one is kept; collectives of the same groups are equal whatever their
// channel. Values behind different opt-barriers stay apart, so recomputation that the program asks for survives.
absl::StatusOr<bool> RunCse(hlo::Module& module);
// Local rewrites: views of views, slices of what was just joined or padded, neutral elements, constant choices,
// collectives of one device.
absl::StatusOr<bool> RunSimplify(hlo::Module& module);
// Of these, those of views alone. For whole programs too, before shardings are chosen.
absl::StatusOr<bool> RunSimplifyViews(hlo::Module& module);
// Evaluates small instructions whose operands are constants.
absl::StatusOr<bool> RunConstantFold(hlo::Module& module);
// Replaces every call by the callee's instructions, except where the program says `inlineable="false"`.
absl::StatusOr<bool> RunInlineCalls(hlo::Module& module);
// Parameters and results whose layout is left to us ("auto") get one: parameters row-major, results the one in which
// they are no more than transposes of what the parameters hold.
absl::StatusOr<bool> RunChooseLayouts(hlo::Module& module);
// A prefix combination by a known monoid that is written as a tree of slices (jax.lax.associative_scan) becomes one
// cumulative reduce-window. For programs that are partitioned: alone, the tree is less work.
absl::StatusOr<bool> RunRecognizeScans(hlo::Module& module);
// Padding of the array of a select-and-scatter that is never selected becomes padding of its windows. For programs that
// are partitioned: the array keeps its extent.
absl::StatusOr<bool> RunFoldWindowPadding(hlo::Module& module);
// A scatter of one window to a constant place inside the array becomes a dynamic-update-slice.
absl::StatusOr<bool> RunScatterToUpdate(hlo::Module& module);
// Loop state: elements the body passes through are read from outside or, when constant, inside; unused ones are
// dropped.
absl::StatusOr<bool> RunSimplifyWhile(hlo::Module& module);
// Sums of zero-padded parts of one array become concatenations. For whole programs, before shardings are chosen.
absl::StatusOr<bool> RunJoinPads(hlo::Module& module);
// What moves numbers of a type without a zero (f8e8m0fnu) moves their bytes, so that parts of them can be added up. For
// whole programs, before they are partitioned.
absl::StatusOr<bool> RunExponentsAsBytes(hlo::Module& module);
// Sums over devices that a loop only adds up are made on each device, and over devices once after the loop.
absl::StatusOr<bool> RunReduceAfterLoop(hlo::Module& module);
// Collectives and products of what a loop does not change are done before it, as long as memory does not grow too much.
absl::StatusOr<bool> RunHoistCollectives(hlo::Module& module);
// A loop that runs while any device has work left stops on each device when its own is done, if that changes nothing.
absl::StatusOr<bool> RunIndependentLoops(hlo::Module& module);
// Independent all-reduces (and all-gathers) of the same kind and groups become one with several operands.
absl::StatusOr<bool> RunCombineCollectives(hlo::Module& module);

// Neighbouring dimensions of a dot that play the same part become one, and a dot that is transposed gets its operands
// in the other order. For the program that a plugin compiles.
absl::StatusOr<bool> RunFlattenDots(hlo::Module& module);
// Maxima and minima of floats along dimensions become those of integers. For the program that a CPU's plugin compiles.
absl::StatusOr<bool> RunIntegerExtremes(hlo::Module& module);
// Arrays of two-bit integers are joined, sorted and reduced beside others as bytes: XLA aborts while it compiles that
// for a CPU, or sorts past the end of its memory. Elements narrower than a byte are transposed as wider ones: what it
// makes of that may abort where it runs.
absl::StatusOr<bool> RunPairsAsBytes(hlo::Module& module);
// Four-bit floats are put into total order as wider ones, of which XLA knows it on a CPU.
absl::StatusOr<bool> RunWidenTotalOrder(hlo::Module& module);
// Long reductions become those of two arrays, the other all false, which a CPU's plugin reduces in one go. For the
// program that it compiles.
absl::StatusOr<bool> RunReduceInOneGo(hlo::Module& module);
// Joins of very many arrays become joins of joins, for which a CPU's plugin takes less time. For the program that it
// compiles.
absl::StatusOr<bool> RunJoinInParts(hlo::Module& module);

using PassFunction = absl::StatusOr<bool> (*)(hlo::Module&);
struct Pass {
  absl::string_view name;     // as in --pass=name
  absl::string_view summary;  // one line of help
  PassFunction run;
};

// Every pass above, once.
absl::Span<const Pass> AllPasses();

}  // namespace gangway::passes
