// The PJRT FFI extension (type PJRT_Extension_Type_FFI), whose structs no wheel ships: layouts as OpenXLA defines them
// in xla/pjrt/c/pjrt_c_api_ffi_extension.h, versions 2 and 3.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pjrt_c_api.h"

namespace gangway::device::pjrt {

struct FfiTypeRegisterArgs {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* type_name;
  size_t type_name_size;
  int64_t type_id;  // 0 in: the plugin chooses one
  void* type_info;  // since version 3; optional
};

struct FfiUserData {
  int64_t type_id;
  void* data;
  void (*deleter)(void* data);  // until version 2; we own what we pass
};

struct FfiUserDataAddArgs {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;
  FfiUserData user_data;
};

struct FfiRegisterHandlerArgsV2 {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  int api_version;  // 1: typed
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  uint32_t traits;
};

struct FfiRegisterHandlerArgs {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  uint32_t traits;
};

struct FfiExtension {
  PJRT_Extension_Base base;
  PJRT_Error* (*type_register)(FfiTypeRegisterArgs*);
  PJRT_Error* (*user_data_add)(FfiUserDataAddArgs*);
  PJRT_Error* (*register_handler)(void*);  // FfiRegisterHandlerArgs or ...V2, told apart by struct_size
};

}  // namespace gangway::device::pjrt
