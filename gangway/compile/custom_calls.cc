#include "gangway/compile/custom_calls.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/hlo/host_callback.h"
#include "gangway/lapack/routine.h"

namespace gangway::compile {
namespace {

// Annotations, and what XLA's own passes turn into operations.
bool IsKnownToXla(absl::string_view target) {
  for (absl::string_view prefix : {"mhlo.", "chlo.", "xla.sdy."}) {
    if (absl::StartsWith(target, prefix)) return true;
  }
  for (absl::string_view name :
       {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "LayoutConstraint",
        "MoveToHost", "MoveToDevice", "PinToHost", "PinToDevice", "AllocateBuffer", "AssumeGatherIndicesInBound",
        "ResizeIdentity", "TopK", "Qr", "Eigh", "ProductOfElementaryHouseholderReflectors"}) {
    if (target == name) return true;
  }
  return false;
}

// Files of the host, where its worker says so (device/pjrt/file_calls.h).
bool IsFileCall(absl::string_view target) { return absl::StartsWith(target, "gangway.file_"); }

absl::Status CheckTarget(absl::string_view target) {
  if (lapack::FindRoutine(target) != nullptr || IsKnownToXla(target) || IsFileCall(target) ||
      hlo::IsJaxHostCallback(target) || target == hlo::kInspectSharding || target == hlo::kDceSink) {
    return absl::OkStatus();
  }
  if (absl::StrContains(target, "python")) {
    return absl::UnimplementedError(absl::StrCat("custom call to '", target, "', a function of the client's process"));
  }
  return absl::UnimplementedError(absl::StrCat("custom call to '", target, "', which Gangway does not know"));
}

bool IsPlacement(const hlo::Instruction& instruction) {
  const auto* call = instruction.attr_if<hlo::CustomCallAttr>();
  if (call == nullptr || instruction.operand_count() != 1) return false;
  if (!Shape::Compatible(instruction.shape(), instruction.operand(0)->shape())) return false;
  for (absl::string_view target :
       {"annotate_device_placement", "MoveToHost", "MoveToDevice", "PinToHost", "PinToDevice"}) {
    if (call->target == target) return true;
  }
  return false;
}

}  // namespace

void NameFileFolder(hlo::Module* module, absl::string_view folder) {
  for (const auto& computation : module->computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto* call = instruction->attr_if<hlo::CustomCallAttr>();
      if (call == nullptr || !IsFileCall(call->target)) continue;
      instruction->mutable_attr<hlo::CustomCallAttr>().backend_config = absl::StrCat("{folder = \"", folder, "\"}");
    }
  }
}

void DropSinks(hlo::Module* module) {
  for (const auto& computation : module->computations()) {
    std::vector<hlo::Instruction*> sinks;
    for (const auto& instruction : computation->instructions()) {
      const auto* call = instruction->attr_if<hlo::CustomCallAttr>();
      if (call != nullptr && call->target == hlo::kDceSink && instruction->users().empty()) {
        sinks.push_back(instruction.get());
      }
    }
    for (hlo::Instruction* sink : sinks) computation->Remove(sink);
  }
}

void DropPlacementCalls(hlo::Module* module) {
  for (const auto& computation : module->computations()) {
    std::vector<hlo::Instruction*> calls;
    for (const auto& instruction : computation->instructions()) {
      if (IsPlacement(*instruction)) calls.push_back(instruction.get());
    }
    for (hlo::Instruction* call : calls) {
      call->ReplaceAllUsesWith(call->operand(0));
      computation->Remove(call);
    }
  }
}

absl::Status CheckCustomCalls(const hlo::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& instruction : computation->instructions()) {
      const auto* call = instruction->attr_if<hlo::CustomCallAttr>();
      if (call == nullptr) continue;
      if (absl::Status status = CheckTarget(call->target); !status.ok()) {
        return absl::UnimplementedError(absl::StrCat("instruction %", instruction->name(), ": ", status.message()));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace gangway::compile
