// From instructions to relations between values.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/propagate/graph_builder.h"
#include "gangway/propagate/sharding_call.h"

namespace gangway::propagate {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using rules::FactorKind;

// Order of strength: what only moves or maps elements, then products, then their contracted dimensions, then what a
// shard cannot do alone.
int StageOf(const Instruction& instruction, FactorKind kind) {
  switch (instruction.opcode()) {
    case Opcode::kDot:
    case Opcode::kConvolution:
    case Opcode::kCustomCall:
      if (kind == FactorKind::kPassThrough) return 1;
      return kind == FactorKind::kReduction ? 2 : 3;
    case Opcode::kDynamicUpdateSlice:
    case Opcode::kScatter:
      return kind == FactorKind::kNeedReplication ? 3 : 0;  // in place
    default:
      return kind == FactorKind::kPassThrough || kind == FactorKind::kReduction ? 0 : 3;
  }
}

// Keeps the factors that relate something.
void FillFactors(const rules::OpRule& rule, Relation* relation) {
  for (const rules::Factor& factor : rule.factors) {
    relation->sizes.push_back(factor.size);
    relation->factors.push_back({factor.size, factor.kind, StageOf(*relation->instruction, factor.kind), {}});
  }
  for (size_t tensor = 0; tensor < relation->factors_of.size(); ++tensor) {
    const rules::ValueFactors& dims = relation->factors_of[tensor];
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      for (size_t place = 0; place < dims[dim].size(); ++place) {
        relation->factors[dims[dim][place]].uses.push_back(
            {static_cast<int>(tensor), static_cast<int>(dim), static_cast<int>(place)});
      }
    }
  }
  auto relates = [](const RelationFactor& factor) {
    return std::any_of(factor.uses.begin(), factor.uses.end(),
                       [&](const Use& use) { return use.tensor != factor.uses.front().tensor; });
  };
  relation->factors.erase(
      std::remove_if(relation->factors.begin(), relation->factors.end(),
                     [&](const RelationFactor& factor) { return factor.uses.empty() || !relates(factor); }),
      relation->factors.end());
}

}  // namespace

void GraphBuilder::AddRelation(Relation relation) {
  if (relation.kind == Relation::Kind::kFactors && relation.factors.empty()) return;
  const int index = static_cast<int>(graph_.relations_.size());
  for (int value : relation.values) {
    std::vector<int>& of = graph_.relations_of_[value];
    if (of.empty() || of.back() != index) of.push_back(index);
  }
  graph_.relations_.push_back(std::move(relation));
}

void GraphBuilder::RelateLeaves(const Instruction& owner, const Instruction* a, int64_t a_leaf, const Instruction* b,
                                int64_t b_leaf) {
  const int x = ValueOf(a, a_leaf), y = ValueOf(b, b_leaf);
  const Shape& shape = graph_.values_[x].shape;
  if (x == y || shape.rank() == 0 || shape.rank() != graph_.values_[y].shape.rank()) return;
  Relation relation;
  relation.instruction = &owner;
  relation.values = {x, y};
  for (int64_t dim = 0; dim < shape.rank(); ++dim) {
    const int d = static_cast<int>(dim);
    relation.sizes.push_back(shape.dim(dim));
    relation.factors.push_back({shape.dim(dim), FactorKind::kPassThrough, 0, {{0, d, 0}, {1, d, 0}}});
  }
  rules::ValueFactors identity;
  for (int d = 0; d < shape.rank(); ++d) identity.push_back({d});
  relation.factors_of = {identity, identity};
  AddRelation(std::move(relation));
}

void GraphBuilder::RelateAllLeaves(const Instruction& owner, const Instruction* a, const Instruction* b) {
  const int64_t count = std::min(LeafCount(a->shape()), LeafCount(b->shape()));
  for (int64_t leaf = 0; leaf < count; ++leaf) RelateLeaves(owner, a, leaf, b, leaf);
}

void GraphBuilder::RelateControl(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kTuple: {
      int64_t leaf = 0;
      for (const Instruction* element : instruction.operands()) {
        for (int64_t i = 0; i < LeafCount(element->shape()); ++i)
          RelateLeaves(instruction, element, i, &instruction, leaf++);
      }
      break;
    }
    case Opcode::kWhile:
      RelateAllLeaves(instruction, instruction.operand(0), &instruction);
      break;
    case Opcode::kConditional:
      for (size_t branch = 0; branch < instruction.called().size(); ++branch) {
        RelateAllLeaves(instruction, instruction.operand(branch + 1), instruction.called()[branch]->parameter(0));
      }
      break;
    case Opcode::kCall: {
      const hlo::Computation* callee = instruction.called()[0];
      for (int64_t i = 0; i < instruction.operand_count(); ++i) {
        RelateAllLeaves(instruction, instruction.operand(i), callee->parameter(i));
      }
      RelateAllLeaves(instruction, callee->root(), &instruction);
      break;
    }
    case Opcode::kOptBarrier:
    case Opcode::kDomain:
    case Opcode::kAddDependency:
      RelateAllLeaves(instruction, instruction.operand(0), &instruction);
      break;
    case Opcode::kCustomCall:
      RelateShardingCall(instruction);
      break;
    default:
      break;
  }
}

void GraphBuilder::RelateShardingCall(const Instruction& instruction) {
  if (IsShardingGroup(instruction)) {
    const int64_t group = FrontendNumber(instruction, "xla.sdy.sharding_group_id", 0);
    const Instruction* first = groups_.try_emplace(group, instruction.operand(0)).first->second;
    RelateAllLeaves(instruction, first, instruction.operand(0));
    return;
  }
  if (!IsManualBoundary(instruction)) {
    if (instruction.operand_count() > 0) RelateAllLeaves(instruction, instruction.operand(0), &instruction);
    return;
  }
  const int in = ValueOf(instruction.operand(0), 0), out = ValueOf(&instruction, 0);
  Relation relation;
  relation.kind = Relation::Kind::kToLocal;
  relation.instruction = &instruction;
  relation.values = IsToLocal(instruction) ? std::vector<int>{in, out} : std::vector<int>{out, in};
  if (graph_.values_[in].shape.rank() == graph_.values_[out].shape.rank()) AddRelation(std::move(relation));
}

absl::Status GraphBuilder::RelateByRule(const Instruction& instruction) {
  GW_ASSIGN_OR_RETURN(rules::OpRule rule, rules::RuleFor(instruction));
  if (rule.form == rules::RuleForm::kControl) RelateControl(instruction);
  if (rule.form != rules::RuleForm::kFactors) return absl::OkStatus();
  Relation relation;
  relation.instruction = &instruction;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    if (!instruction.operand(i)->shape().IsArray() || rule.operands[i].empty()) continue;
    relation.values.push_back(ValueOf(instruction.operand(i), 0));
    relation.factors_of.push_back(std::move(rule.operands[i]));
  }
  for (size_t leaf = 0; leaf < rule.results.size(); ++leaf) {
    if (rule.results[leaf].empty()) continue;
    relation.values.push_back(ValueOf(&instruction, static_cast<int64_t>(leaf)));
    relation.factors_of.push_back(std::move(rule.results[leaf]));
  }
  if (IsBarrier(instruction)) {
    const int64_t directions = FrontendNumber(instruction, "xla.sdy.allowed_direction", 0);
    relation.forward = (directions & 1) != 0;
    relation.backward = (directions & 2) != 0;
  }
  FillFactors(rule, &relation);
  AddRelation(std::move(relation));
  return absl::OkStatus();
}

}  // namespace gangway::propagate
