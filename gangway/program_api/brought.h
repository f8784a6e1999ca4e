// Arguments where a function wants them.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gangway/controller/controller.h"

namespace gangway::program_api {

// What a function takes or gives, as arrays are described.
controller::ArraySpec SpecOf(const controller::Program& program, const compile::ValueInfo& value);

// The array as a parameter of a program: itself where it is on the program's devices and split as that wants, otherwise
// a new array that is; of another shape or element type it is left for Execute to refuse. On the controller's loop.
absl::StatusOr<controller::ArrayId> Bring(controller::Controller& controller, controller::SessionId session,
                                          controller::ArrayId array, const controller::Program& program,
                                          size_t parameter);

// All arguments of one call. What was made for it goes with this. On the controller's loop.
class Brought {
 public:
  static absl::StatusOr<Brought> To(controller::Controller& controller, controller::SessionId session,
                                    const controller::Program& program, std::vector<controller::ArrayId> arguments);
  Brought(Brought&& other) noexcept
      : controller_(other.controller_), arguments_(std::move(other.arguments_)), made_(std::move(other.made_)) {
    other.made_.clear();
  }
  ~Brought();

  const std::vector<controller::ArrayId>& arguments() const { return arguments_; }
  // Whether that argument was made for this call.
  bool IsNew(size_t argument) const { return made_[argument]; }

 private:
  explicit Brought(controller::Controller& controller) : controller_(&controller) {}

  controller::Controller* controller_;
  std::vector<controller::ArrayId> arguments_;
  std::vector<bool> made_;
};

}  // namespace gangway::program_api
