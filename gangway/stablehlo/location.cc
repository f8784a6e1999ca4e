#include "gangway/stablehlo/location.h"

namespace gangway::stablehlo {
namespace {

// Locations nest as deep as the user's call stack; a file can also make them refer to each other in a circle.
constexpr int kMaxSteps = 1024;

}  // namespace

hlo::OpMetadata ReadLocation(const bytecode::Entries& entries, bytecode::AttributeId location) {
  hlo::OpMetadata metadata;
  bool inside_frame = false;  // names below a call site are those of functions
  for (int step = 0; step < kMaxSteps; ++step) {
    absl::StatusOr<const bytecode::Attribute*> attribute = entries.attribute(location);
    if (!attribute.ok()) break;
    if (const auto* name = std::get_if<bytecode::NameLocation>(*attribute)) {
      if (!inside_frame && metadata.op_name.empty()) metadata.op_name = std::string(name->name);
      inside_frame = true;
      location = name->child;
    } else if (const auto* call = std::get_if<bytecode::CallSiteLocation>(*attribute)) {
      inside_frame = true;
      location = call->callee;
    } else if (const auto* fused = std::get_if<bytecode::FusedLocation>(*attribute)) {
      if (fused->parts.empty()) break;
      location = fused->parts.front();
    } else if (const auto* file = std::get_if<bytecode::FileLocation>(*attribute)) {
      metadata.source_file = std::string(file->file);
      metadata.source_line = static_cast<int>(file->line);
      break;
    } else {
      break;
    }
  }
  return metadata;
}

}  // namespace gangway::stablehlo
