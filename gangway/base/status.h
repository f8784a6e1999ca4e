// Error handling: absl::Status with context added as it rises.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gangway {

// The same code with `context` put before the message, e.g. "program jit_step: instruction %add.1: ...".
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

namespace internal {
inline const absl::Status& AsStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& value) {
  return value.status();
}
}  // namespace internal
}  // namespace gangway

#define GW_CONCAT_INNER(a, b) a##b
#define GW_CONCAT(a, b) GW_CONCAT_INNER(a, b)

// Returns the status of `expr` from the enclosing function when it is not OK.
#define GW_RETURN_IF_ERROR(expr)                                            \
  do {                                                                      \
    if (absl::Status gw_status = (expr); !gw_status.ok()) return gw_status; \
  } while (false)

// Like GW_RETURN_IF_ERROR, with context put before the message. `context` is evaluated only on error.
#define GW_RETURN_IF_ERROR_WITH(expr, context)                                                            \
  do {                                                                                                    \
    if (absl::Status gw_status = (expr); !gw_status.ok()) return ::gangway::Annotate(gw_status, context); \
  } while (false)

// GW_ASSIGN_OR_RETURN(auto x, MakeX());
#define GW_ASSIGN_OR_RETURN(lhs, expr) GW_ASSIGN_OR_RETURN_IMPL(GW_CONCAT(gw_value_, __LINE__), lhs, expr)
#define GW_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr)            \
  auto tmp = (expr);                                        \
  if (!tmp.ok()) return ::gangway::internal::AsStatus(tmp); \
  lhs = std::move(tmp).value()

#define GW_ASSIGN_OR_RETURN_WITH(lhs, expr, context) \
  GW_ASSIGN_OR_RETURN_WITH_IMPL(GW_CONCAT(gw_value_, __LINE__), lhs, expr, context)
#define GW_ASSIGN_OR_RETURN_WITH_IMPL(tmp, lhs, expr, context)      \
  auto tmp = (expr);                                                \
  if (!tmp.ok()) return ::gangway::Annotate(tmp.status(), context); \
  lhs = std::move(tmp).value()
