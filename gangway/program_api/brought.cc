#include "gangway/program_api/brought.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/controller/shard_pieces.h"
#include "gangway/mesh/geometry.h"

namespace gangway::program_api {
namespace {

using controller::ArrayId;
using controller::ArraySpec;

// Whether an array lies where and as the parameter wants it.
bool LiesRight(const ArraySpec& spec, const controller::Program& program, const compile::ValueInfo& parameter) {
  if (spec.devices != program.devices) return false;
  if (!spec.sharding.has_value() || *spec.sharding == parameter.sharding) return true;
  if (spec.sharding->unreduced.empty() != parameter.sharding.unreduced.empty()) return false;
  return !HoldOtherParts(spec, SpecOf(program, parameter));
}

}  // namespace

ArraySpec SpecOf(const controller::Program& program, const compile::ValueInfo& value) {
  ArraySpec spec;
  spec.dtype = value.shape.dtype();
  spec.dims = value.shape.dims();
  spec.devices = program.devices;
  spec.shard_dims = {ShardShape(value.shape, value.sharding).dims()};
  spec.sharding = value.sharding;
  spec.memory_kind = value.memory_kind;
  return spec;
}

absl::StatusOr<ArrayId> Bring(controller::Controller& controller, controller::SessionId session, ArrayId array,
                              const controller::Program& program, size_t parameter) {
  GW_ASSIGN_OR_RETURN(const ArraySpec* spec, controller.Spec(array));
  const compile::ValueInfo& wanted = program.compiled.parameters[parameter];
  if (spec->dtype != wanted.shape.dtype() || spec->dims != wanted.shape.dims()) return array;
  if (LiesRight(*spec, program, wanted)) return array;
  return controller.Reshard(session, array, SpecOf(program, wanted), controller::CopySemantics::kCopy);
}

absl::StatusOr<Brought> Brought::To(controller::Controller& controller, controller::SessionId session,
                                    const controller::Program& program, std::vector<ArrayId> arguments) {
  Brought brought(controller);
  brought.arguments_ = std::move(arguments);
  brought.made_.resize(brought.arguments_.size(), false);
  const size_t known = std::min(brought.arguments_.size(), program.compiled.parameters.size());
  for (size_t i = 0; i < known; ++i) {
    ArrayId& argument = brought.arguments_[i];
    GW_ASSIGN_OR_RETURN_WITH(const ArrayId there, Bring(controller, session, argument, program, i),
                             absl::StrCat("program ", program.compiled.name, ": argument ", i));
    brought.made_[i] = there != argument;
    argument = there;
  }
  return brought;
}

Brought::~Brought() {
  for (size_t i = 0; i < made_.size(); ++i) {
    if (made_[i]) controller_->Release(arguments_[i]);
  }
}

}  // namespace gangway::program_api
