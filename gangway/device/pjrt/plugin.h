// A PJRT C-API plugin: a shared library that serves one kind of device.
// Source: OpenXLA's xla/pjrt/c/pjrt_c_api.h, as shipped in the plugin's wheel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pjrt_c_api.h"

// Declares zeroed arguments of a C-API call, struct_size set: GW_PJRT_ARGS(PJRT_Buffer_Delete_Args, args);
#define GW_PJRT_ARGS(type, name) \
  type name = {};                \
  name.struct_size = type##_STRUCT_SIZE

// Whether a plugin, which may be older than our header, has this entry point.
#define GW_PJRT_HAS(api, function)                                                                          \
  ((api).struct_size >= offsetof(PJRT_Api, function) + sizeof(static_cast<PJRT_Api*>(nullptr)->function) && \
   (api).function != nullptr)

namespace gangway::device::pjrt {

// Immutable after Load, thread-safe. The library stays loaded until the process ends: plugins start threads that cannot
// be stopped.
class Plugin {
 public:
  // NOT_FOUND: no such file. INVALID_ARGUMENT: not a plugin. UNIMPLEMENTED: another major version or a required entry
  // point missing, named in the message.
  static absl::StatusOr<std::shared_ptr<const Plugin>> Load(const std::string& path);

  const std::string& path() const { return path_; }
  const PJRT_Api& api() const { return *api_; }
  // nullptr when the plugin does not have it.
  const PJRT_Extension_Base* extension(PJRT_Extension_Type type) const;

  // Takes the error over.
  absl::Status ToStatus(PJRT_Error* error) const;
  // Calls an entry point that answers an error or nullptr.
  template <typename Args>
  absl::Status Call(PJRT_Error* (*function)(Args*), Args& args) const {
    PJRT_Error* error = function(&args);
    return error == nullptr ? absl::OkStatus() : ToStatus(error);
  }

 private:
  Plugin(std::string path, const PJRT_Api* api) : path_(std::move(path)), api_(api) {}

  const std::string path_;
  const PJRT_Api* const api_;
};

}  // namespace gangway::device::pjrt
