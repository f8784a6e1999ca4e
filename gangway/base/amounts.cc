#include "gangway/base/amounts.h"

#include "absl/strings/str_format.h"

namespace gangway {

std::string BytesText(double bytes) {
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return *unit == 'B' ? absl::StrFormat("%.0f B", bytes) : absl::StrFormat("%.2f %s", bytes, unit);
}

std::string SecondsText(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.2f s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.2f ms", seconds * 1e3);
  return absl::StrFormat("%.1f us", seconds * 1e6);
}

}  // namespace gangway
