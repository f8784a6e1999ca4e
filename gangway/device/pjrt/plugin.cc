#include "gangway/device/pjrt/plugin.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gangway/base/status.h"

namespace gangway::device::pjrt {
namespace {

// Without these a plugin cannot serve at all; everything else is looked for where it is used.
std::vector<std::string> MissingEntryPoints(const PJRT_Api& api) {
  std::vector<std::string> missing;
#define GW_REQUIRE(function) \
  if (!GW_PJRT_HAS(api, function)) missing.push_back(#function)
  GW_REQUIRE(PJRT_Error_Destroy);
  GW_REQUIRE(PJRT_Error_Message);
  GW_REQUIRE(PJRT_Error_GetCode);
  GW_REQUIRE(PJRT_Event_Destroy);
  GW_REQUIRE(PJRT_Event_OnReady);
  GW_REQUIRE(PJRT_Client_Create);
  GW_REQUIRE(PJRT_Client_Destroy);
  GW_REQUIRE(PJRT_Client_PlatformName);
  GW_REQUIRE(PJRT_Client_PlatformVersion);
  GW_REQUIRE(PJRT_Client_AddressableDevices);
  GW_REQUIRE(PJRT_Client_Compile);
  GW_REQUIRE(PJRT_Client_BufferFromHostBuffer);
  GW_REQUIRE(PJRT_DeviceDescription_Kind);
  GW_REQUIRE(PJRT_Device_GetDescription);
  GW_REQUIRE(PJRT_Executable_Destroy);
  GW_REQUIRE(PJRT_Executable_NumOutputs);
  GW_REQUIRE(PJRT_Executable_OutputElementTypes);
  GW_REQUIRE(PJRT_Executable_OutputDimensions);
  GW_REQUIRE(PJRT_LoadedExecutable_Destroy);
  GW_REQUIRE(PJRT_LoadedExecutable_GetExecutable);
  GW_REQUIRE(PJRT_LoadedExecutable_Execute);
  GW_REQUIRE(PJRT_Buffer_Destroy);
  GW_REQUIRE(PJRT_Buffer_Delete);
  GW_REQUIRE(PJRT_Buffer_IsDeleted);
  GW_REQUIRE(PJRT_Buffer_CopyToDevice);
  GW_REQUIRE(PJRT_Buffer_ToHostBuffer);
  GW_REQUIRE(PJRT_Buffer_ReadyEvent);
#undef GW_REQUIRE
  return missing;
}

absl::Status CheckVersion(const std::string& path, const PJRT_Api& api) {
  // Before the version can be trusted, the table must be long enough to hold it.
  if (api.struct_size < offsetof(PJRT_Api, PJRT_Error_Destroy)) {
    return absl::InvalidArgumentError(
        absl::StrCat("PJRT plugin ", path, ": its function table of ", api.struct_size, " bytes is too short"));
  }
  const PJRT_Api_Version& version = api.pjrt_api_version;
  if (version.major_version != PJRT_API_MAJOR) {
    return absl::UnimplementedError(absl::StrCat("PJRT plugin ", path, " has API version ", version.major_version, ".",
                                                 version.minor_version, "; this build speaks ", PJRT_API_MAJOR, ".",
                                                 PJRT_API_MINOR));
  }
  if (std::vector<std::string> missing = MissingEntryPoints(api); !missing.empty()) {
    return absl::UnimplementedError(absl::StrCat("PJRT plugin ", path, " (API ", version.major_version, ".",
                                                 version.minor_version, ") lacks ", absl::StrJoin(missing, ", ")));
  }
  return absl::OkStatus();
}

// The CPU plugin wraps what fails while a launch is prepared in an internal error; who catches memory that is not there
// goes by the code.
absl::StatusCode CodeOf(absl::StatusCode code, absl::string_view message) {
  const bool exhausted = code == absl::StatusCode::kInternal && absl::StrContains(message, "Out of memory allocating");
  return exhausted ? absl::StatusCode::kResourceExhausted : code;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Plugin>> Plugin::Load(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return absl::NotFoundError(absl::StrCat("PJRT plugin ", path, ": no such file"));
  // XLA tells every client it starts; the user's own setting wins.
  setenv("TF_CPP_MIN_LOG_LEVEL", "1", /*overwrite=*/0);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("PJRT plugin ", path, ": not a shared library: ", dlerror()));
  }
  auto get_api = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    dlclose(library);
    return absl::InvalidArgumentError(absl::StrCat("PJRT plugin ", path, ": it has no function GetPjrtApi"));
  }
  const PJRT_Api* api = get_api();
  if (api == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("PJRT plugin ", path, ": GetPjrtApi gave nothing"));
  GW_RETURN_IF_ERROR(CheckVersion(path, *api));
  std::shared_ptr<const Plugin> plugin(new Plugin(path, api));
  if (GW_PJRT_HAS(*api, PJRT_Plugin_Initialize)) {
    GW_PJRT_ARGS(PJRT_Plugin_Initialize_Args, args);
    GW_RETURN_IF_ERROR_WITH(plugin->Call(api->PJRT_Plugin_Initialize, args), absl::StrCat("PJRT plugin ", path));
  }
  return plugin;
}

const PJRT_Extension_Base* Plugin::extension(PJRT_Extension_Type type) const {
  for (const PJRT_Extension_Base* e = api_->extension_start; e != nullptr; e = e->next) {
    if (e->type == type) return e;
  }
  return nullptr;
}

absl::Status Plugin::ToStatus(PJRT_Error* error) const {
  if (error == nullptr) return absl::OkStatus();
  GW_PJRT_ARGS(PJRT_Error_Message_Args, message);
  message.error = error;
  api_->PJRT_Error_Message(&message);
  GW_PJRT_ARGS(PJRT_Error_GetCode_Args, code);
  code.error = error;
  absl::StatusCode status_code = absl::StatusCode::kUnknown;
  if (PJRT_Error* nested = api_->PJRT_Error_GetCode(&code); nested != nullptr) {
    GW_PJRT_ARGS(PJRT_Error_Destroy_Args, destroy);
    destroy.error = nested;
    api_->PJRT_Error_Destroy(&destroy);
  } else if (code.code != PJRT_Error_Code_OK) {
    status_code = static_cast<absl::StatusCode>(code.code);  // the numbers are those of absl
  }
  const absl::string_view text(message.message, message.message_size);
  absl::Status status(CodeOf(status_code, text), text);
  GW_PJRT_ARGS(PJRT_Error_Destroy_Args, destroy);
  destroy.error = error;
  api_->PJRT_Error_Destroy(&destroy);
  return status;
}

}  // namespace gangway::device::pjrt
