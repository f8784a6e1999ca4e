// Amounts for people.
#pragma once

#include <string>

namespace gangway {

std::string BytesText(double bytes);      // "12 B", "1.50 MiB"
std::string SecondsText(double seconds);  // "12.3 us"

}  // namespace gangway
