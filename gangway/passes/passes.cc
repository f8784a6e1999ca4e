#include "gangway/passes/passes.h"

#include "gangway/passes/loop_einsum.h"
#include "gangway/passes/loop_scattered_einsum.h"

namespace gangway::passes {
namespace {

constexpr Pass kPasses[] = {
    {"dce", "remove instructions and computations without effect", RunDce},
    {"cse", "compute equal instructions once", RunCse},
    {"simplify", "local rewrites of views, slices, neutral elements and constant choices", RunSimplify},
    {"simplify-views", "local rewrites of views of views", RunSimplifyViews},
    {"constant-fold", "evaluate small instructions of constants", RunConstantFold},
    {"inline-calls", "replace calls by their bodies", RunInlineCalls},
    {"choose-layouts", "choose layouts of parameters and results that are left open", RunChooseLayouts},
    {"fold-window-padding", "give the padding of a pooled array to the gradient's windows", RunFoldWindowPadding},
    {"recognize-scans", "make one cumulative operation of a tree of slices", RunRecognizeScans},
    {"scatter-to-update", "write scatters of one window to a known place as updates", RunScatterToUpdate},
    {"simplify-while", "drop unused loop state and read invariants from outside the loop", RunSimplifyWhile},
    {"join-pads", "write sums of zero-padded parts of one array as concatenations", RunJoinPads},
    {"reduce-after-loop", "add up over devices after a loop instead of in each of its steps", RunReduceAfterLoop},
    {"hoist-collectives", "do collectives and products of loop invariants before the loop", RunHoistCollectives},
    {"independent-loops", "let each device stop a loop that needs no other device", RunIndependentLoops},
    {"loop-einsums", "multiply shard by shard instead of gathering", RunLoopEinsums},
    {"loop-scattered-einsums", "pass sums on part by part instead of scattering them", RunLoopScatteredEinsums},
    {"combine-collectives", "join independent all-reduces and all-gathers of the same groups", RunCombineCollectives},
    {"flatten-dots", "join neighbouring dimensions of dots that play the same part", RunFlattenDots},
    {"integer-extremes", "take maxima and minima of floats as integers, which keeps NaN", RunIntegerExtremes},
    {"exponents-as-bytes", "move numbers of a type without a zero as bytes", RunExponentsAsBytes},
    {"pairs-as-bytes", "transpose packed elements as wider ones; join, sort and reduce two-bit integers as bytes",
     RunPairsAsBytes},
    {"widen-total-order", "put four-bit floats into total order as wider ones", RunWidenTotalOrder},
    {"reduce-in-one-go", "reduce along long dimensions without a tree of windows", RunReduceInOneGo},
    {"join-in-parts", "join very many arrays some at a time", RunJoinInParts},
};

}  // namespace

absl::Span<const Pass> AllPasses() { return kPasses; }

}  // namespace gangway::passes
