#include "gangway/partition/permute_pairs.h"

#include <algorithm>

namespace gangway::partition {
namespace {

bool IsHeld(const Holders& holders, int atom) {
  return std::find(holders.begin(), holders.end(), atom) != holders.end();
}

// For each axis part, whose value on the sender is its value on the receiver: itself for parts free on both sides, the
// part that held the digit before for those that hold it afterwards. -1 where a digit newly split decides.
std::vector<int> SourceOfAtom(const DigitView& view, const Holders& before, const Holders& after,
                              const std::vector<int>& joined) {
  const int count = static_cast<int>(view.atoms.size());
  std::vector<int> source(count, -1);
  for (size_t i = 0; i < after.size(); ++i) {
    if (after[i] != kLocal && before[i] != kLocal) source[after[i]] = before[i];
  }
  std::vector<bool> used(count, false);
  for (int s : source) {
    if (s >= 0) used[s] = true;
  }
  for (int digit : joined) used[before[digit]] = true;  // consumed by the piece index
  for (int a = 0; a < count; ++a) {
    if (!IsHeld(after, a) && !used[a]) source[a] = a, used[a] = true;
  }
  // Parts that became free take over parts that were free, size by size.
  for (int a = 0; a < count; ++a) {
    if (IsHeld(after, a) || source[a] >= 0) continue;
    for (int b = 0; b < count; ++b) {
      if (used[b] || view.atoms[b].size != view.atoms[a].size) continue;
      source[a] = b;
      used[b] = true;
      break;
    }
  }
  return source;
}

}  // namespace

std::vector<int> PairBySize(const DigitView& view, const std::vector<int>& released, std::vector<int> taken) {
  std::vector<int> paired;
  for (int digit : released) {
    for (auto it = taken.begin(); it != taken.end(); ++it) {
      if (view.digits[*it].size != view.digits[digit].size) continue;
      paired.push_back(*it);
      taken.erase(it);
      break;
    }
  }
  return paired;
}

DevicePairs ExchangePairs(const DigitView& view, const Holders& before, const Holders& after,
                          const std::vector<int>& joined, const std::vector<int>& split, int64_t round) {
  const Mesh& mesh = *view.mesh;
  const int count = static_cast<int>(view.atoms.size());
  const std::vector<int> source = SourceOfAtom(view, before, after, joined);
  std::vector<int64_t> strides;
  for (const AxisRef& atom : view.atoms) strides.push_back(StrideOf(mesh, atom));
  int64_t pieces = 1;
  for (int digit : joined) pieces *= view.digits[digit].size;

  DevicePairs pairs;
  pairs.reserve(mesh.size());
  std::vector<int64_t> sent(count), received(count);
  for (int64_t position = 0; position < mesh.size(); ++position) {
    for (int a = 0; a < count; ++a) sent[a] = position / strides[a] % view.atoms[a].size;
    int64_t place = 0;
    for (int digit : joined) place = place * view.digits[digit].size + sent[before[digit]];
    int64_t piece = (place + round) % pieces;
    for (int a = 0; a < count; ++a) received[a] = source[a] >= 0 ? sent[source[a]] : 0;
    for (size_t i = split.size(); i-- > 0;) {
      received[after[split[i]]] = piece % view.digits[split[i]].size;
      piece /= view.digits[split[i]].size;
    }
    int64_t target = position;
    for (int a = 0; a < count; ++a) target += (received[a] - sent[a]) * strides[a];
    pairs.push_back({mesh.DeviceAt(position), mesh.DeviceAt(target)});
  }
  return pairs;
}

DevicePairs PermutePairs(const DigitView& view, const Holders& before, const Holders& after) {
  return ExchangePairs(view, before, after, {}, {}, 0);
}

}  // namespace gangway::partition
