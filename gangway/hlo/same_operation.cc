#include "gangway/hlo/same_operation.h"

#include "absl/container/flat_hash_map.h"

namespace gangway::hlo {
namespace {

bool SameCalled(const Instruction& a, const Instruction& b) {
  if (a.called().size() != b.called().size()) return false;
  for (size_t i = 0; i < a.called().size(); ++i) {
    if (a.called()[i] != b.called()[i] && !SameComputation(*a.called()[i], *b.called()[i])) return false;
  }
  return true;
}

bool SameAttributes(const Instruction& a, const Instruction& b) {
  if (const auto* constant = a.attr_if<ConstantAttr>()) {
    const auto* other = b.attr_if<ConstantAttr>();
    if (other == nullptr) return false;
    if (constant->literal == other->literal) return true;
    return a.shape().ByteSize() <= kMaxComparedBytes && *constant->literal == *other->literal;
  }
  if (IsCollective(a.opcode())) {
    CollectiveAttr x = a.attr<CollectiveAttr>(), y = b.attr<CollectiveAttr>();
    if (x.channel_id.has_value() != y.channel_id.has_value()) return false;
    x.channel_id = y.channel_id;
    return x == y;
  }
  return a.attributes() == b.attributes();
}

}  // namespace

bool SameOperation(const Instruction& a, const Instruction& b) {
  return a.opcode() == b.opcode() && a.operand_count() == b.operand_count() &&
         Shape::Compatible(a.shape(), b.shape()) && SameAttributes(a, b) && a.backend_config() == b.backend_config() &&
         a.frontend_attributes() == b.frontend_attributes() && SameCalled(a, b);
}

bool SameComputation(const Computation& a, const Computation& b) {
  if (a.size() != b.size()) return false;
  absl::flat_hash_map<const Instruction*, const Instruction*> partner;
  for (int64_t i = 0; i < a.size(); ++i) {
    const Instruction &x = *a.instructions()[i], &y = *b.instructions()[i];
    if (!SameOperation(x, y) || x.shardings() != y.shardings() || x.IsRoot() != y.IsRoot()) return false;
    for (int64_t k = 0; k < x.operand_count(); ++k) {
      if (partner.at(x.operand(k)) != y.operand(k)) return false;
    }
    partner[&x] = &y;
  }
  return true;
}

}  // namespace gangway::hlo
