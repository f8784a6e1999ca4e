// Who sends to whom when the same tiles move to other devices.
#pragma once

#include <vector>

#include "gangway/partition/collectives.h"
#include "gangway/partition/digits.h"

namespace gangway::partition {

// Both states split the same digits. Every device sends one tile and receives one.
DevicePairs PermutePairs(const DigitView& view, const Holders& before, const Holders& after);

// `taken` reordered so that it pairs with `released` by size.
std::vector<int> PairBySize(const DigitView& view, const std::vector<int>& released, std::vector<int> taken);

// Round `round` of an exchange that makes the digits `joined` local and splits the digits `split`: a sender at place r
// along the axes of `joined` sends its piece r + round.
DevicePairs ExchangePairs(const DigitView& view, const Holders& before, const Holders& after,
                          const std::vector<int>& joined, const std::vector<int>& split, int64_t round);

}  // namespace gangway::partition
