// What plans are weighed by: bytes received per device, and everything else in such bytes.
#pragma once

namespace gangway::compile {

// Arithmetic beyond what the first try does is dear; what is saved beside it is worth little.
inline constexpr double kBytesPerFlop = 0.05;
inline constexpr double kBytesPerSavedFlop = 0.0002;
inline constexpr double kBytesPerTouchedByte = 0.0001;
inline constexpr double kBytesPerCollective = 16384;  // for every one that runs
inline constexpr double kBytesPerHeldByte = 0.001;    // of peak memory: between plans that move about the same

}  // namespace gangway::compile
