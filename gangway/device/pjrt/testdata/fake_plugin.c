// Plugins that are wrong in one way each, chosen by the build: FAKE_MAJOR, FAKE_SIZE.
#include <string.h>

#include "pjrt_c_api.h"

#ifdef FAKE_SIZE
const PJRT_Api* GetPjrtApi(void) {
  static PJRT_Api api;
  memset(&api, 0, sizeof api);
  api.struct_size = FAKE_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.major_version = FAKE_MAJOR;
  api.pjrt_api_version.minor_version = 3;
  return &api;
}
#else
int fake_plugin_has_nothing;
#endif
