#include "gangway/hlo/opcode.h"

#include "absl/container/flat_hash_map.h"

namespace gangway::hlo {
namespace {

constexpr OpTrait kNone = OpTrait::kNone;
constexpr OpTrait kElementwise = OpTrait::kElementwise;
constexpr OpTrait kCollective = OpTrait::kCollective;

constexpr OpcodeInfo kInfos[] = {
#define X(name, text, arity, trait) {Opcode::name, text, arity, trait},
    GANGWAY_HLO_OPCODES(X)
#undef X
};

}  // namespace

absl::Span<const OpcodeInfo> AllOpcodes() { return kInfos; }

const OpcodeInfo& InfoOf(Opcode opcode) { return kInfos[static_cast<int>(opcode)]; }

std::optional<Opcode> ParseOpcode(absl::string_view name) {
  static const auto& by_name = *[] {
    auto* map = new absl::flat_hash_map<absl::string_view, Opcode>;
    for (const OpcodeInfo& info : kInfos) map->emplace(info.name, info.opcode);
    return map;
  }();
  auto it = by_name.find(name);
  if (it == by_name.end()) return std::nullopt;
  return it->second;
}

}  // namespace gangway::hlo
