// A program as bytes that its client may keep and bring back: jax.experimental.serialize_executable, JAX's persistent
// compilation cache.
//
// The protocol has no requests for this; our JAX plugin asks by compile requests with an option of ours: the answer to
// one with kSealOption, a program's fingerprint, has the sealed program for its fingerprint; one with kOpenOption, a
// sealed program in base64, compiles that program instead of its own.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla/python/ifrt_proxy/common/ifrt_service.pb.h"

namespace gangway::ifrt_proxy {

inline constexpr char kSealOption[] = "gangway_seal";
inline constexpr char kOpenOption[] = "gangway_open";

// The same for programs compiled from the same with the same options for the same devices, sealed in between or not.
std::string FingerprintOf(const xla::ifrt::proxy::CompileRequest& request);

// What it was compiled from, behind lines of text that say so, of which Gangway and how many bytes. UNIMPLEMENTED when
// the program calls functions of its client's process.
absl::StatusOr<std::string> Seal(const xla::ifrt::proxy::CompileRequest& request);

// INVALID_ARGUMENT for bytes that are no sealed program or not a whole one, FAILED_PRECONDITION for one of another
// version of Gangway.
absl::StatusOr<xla::ifrt::proxy::CompileRequest> Unseal(absl::string_view sealed);

}  // namespace gangway::ifrt_proxy
