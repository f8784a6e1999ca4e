#include "gangway/controller/byte_account.h"

#include "absl/strings/str_cat.h"
#include "gangway/base/amounts.h"

namespace gangway::controller {

absl::Status ByteAccount::Add(int64_t bytes) {
  const int64_t taken = bytes_.fetch_add(bytes);
  absl::Status status = Beyond(taken, bytes);
  if (!status.ok()) bytes_ -= bytes;
  return status;
}

absl::Status ByteAccount::Check(int64_t bytes) const { return Beyond(bytes_, bytes); }

absl::Status ByteAccount::Beyond(int64_t taken, int64_t bytes) const {
  if (limit_ == 0 || bytes == 0 || bytes <= limit_ - taken) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      owner_, ": ", BytesText(static_cast<double>(bytes)), " more on their way are beyond its ", quota_, " of ",
      BytesText(static_cast<double>(limit_)), ", of which ", BytesText(static_cast<double>(taken)), " are taken"));
}

}  // namespace gangway::controller
