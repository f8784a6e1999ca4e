// Text of collectives: channel_id=1, replica_groups={{0,1}} | [4,2]<=[8]T(1,0) | mesh['x'=4] {'x'}, dimensions={0}.
#include <algorithm>
#include <cstdint>

#include "gangway/hlo/text_attributes.h"
#include "gangway/mesh/hlo_sharding.h"

namespace gangway::hlo {
namespace {

constexpr int64_t kMaxDevices = int64_t{1} << 24;

absl::StatusOr<std::vector<int64_t>> ReadList(TextLexer* lexer, absl::string_view open, absl::string_view close) {
  std::vector<int64_t> values;
  GW_RETURN_IF_ERROR(lexer->Expect(open));
  while (!lexer->Consume(close)) {
    if (!values.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
    GW_ASSIGN_OR_RETURN(int64_t value, lexer->Int());
    values.push_back(value);
  }
  return values;
}

// {{0,1},{2,3}}, {{0,1}} or {}
absl::Status ReadExplicit(TextLexer* lexer, ReplicaGroupList* list) {
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  while (!lexer->Consume("}")) {
    if (!list->groups.empty()) GW_RETURN_IF_ERROR(lexer->Expect(","));
    GW_ASSIGN_OR_RETURN(std::vector<int64_t> group, ReadList(lexer, "{", "}"));
    list->groups.push_back(std::move(group));
  }
  return absl::OkStatus();
}

// [4,2]<=[8] or [2,4]<=[4,2]T(1,0)
absl::Status ReadIota(TextLexer* lexer, ReplicaGroupList* list) {
  list->form = ReplicaGroupList::Form::kIota;
  GW_ASSIGN_OR_RETURN(std::vector<int64_t> tile, ReadList(lexer, "[", "]"));
  if (tile.size() != 2) return lexer->Error("[groups,size]");
  list->num_groups = tile[0];
  list->group_size = tile[1];
  GW_RETURN_IF_ERROR(lexer->Expect("<="));
  GW_ASSIGN_OR_RETURN(list->iota_reshape, ReadList(lexer, "[", "]"));
  if (lexer->Consume("T")) {
    GW_ASSIGN_OR_RETURN(std::vector<int64_t> permutation, ReadList(lexer, "(", ")"));
    for (int64_t dim : permutation) {
      if (dim < 0 || dim >= static_cast<int64_t>(list->iota_reshape.size())) return lexer->Error("a permutation");
      list->iota_transpose.push_back(static_cast<int>(dim));
    }
  }
  return ValidateReplicaGroups(*list);
}

absl::StatusOr<ReplicaGroupList> ReadGroups(AttributeText* text) {
  ReplicaGroupList list;
  std::optional<TextLexer> lexer = text->Take("replica_groups");
  if (!lexer.has_value()) return list;
  if (lexer->PeekIs("mesh")) {
    list.form = ReplicaGroupList::Form::kMeshAxes;
    GW_ASSIGN_OR_RETURN_WITH(MeshAndAxes parsed, ParseMeshAndAxes(lexer->Remainder()), "replica_groups");
    list.mesh = parsed.mesh;
    list.axes = parsed.axes;
    return list;
  }
  if (lexer->Peek() == '[') {
    GW_RETURN_IF_ERROR(ReadIota(&*lexer, &list));
  } else {
    GW_RETURN_IF_ERROR(ReadExplicit(&*lexer, &list));
  }
  GW_RETURN_IF_ERROR(lexer->ExpectEnd());
  return list;
}

absl::StatusOr<Attributes> ReadCollective(const AttributeContext& context, AttributeText* text) {
  CollectiveAttr attr;
  if (std::optional<TextLexer> lexer = text->Take("channel_id")) {
    GW_ASSIGN_OR_RETURN(attr.channel_id, lexer->Int());
  }
  GW_ASSIGN_OR_RETURN(attr.groups, ReadGroups(text));
  if (std::optional<TextLexer> lexer = text->Take("source_target_pairs")) {
    ReplicaGroupList pairs;
    GW_RETURN_IF_ERROR(ReadExplicit(&*lexer, &pairs));
    for (const std::vector<int64_t>& pair : pairs.groups) {
      if (pair.size() != 2) return lexer->Error("pairs");
      attr.source_target_pairs.emplace_back(pair[0], pair[1]);
    }
  }
  GW_ASSIGN_OR_RETURN(DimVector dims, text->TakeDims("dimensions"));
  if (dims.size() > 1) return absl::InvalidArgumentError("dimensions must name one");
  if (!dims.empty()) attr.dimension = dims[0];
  GW_ASSIGN_OR_RETURN(attr.use_global_device_ids, text->TakeBool("use_global_device_ids"));
  GW_ASSIGN_OR_RETURN(attr.constrain_layout, text->TakeBool("constrain_layout"));
  return Attributes(std::move(attr));
}

bool IsPermute(Opcode opcode) {
  return opcode == Opcode::kCollectivePermute || opcode == Opcode::kCollectivePermuteStart;
}

void WriteCollective(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<CollectiveAttr>();
  if (attr.channel_id.has_value()) writer->Add("channel_id", *attr.channel_id);
  if (IsPermute(instruction.opcode())) {
    writer->Add("source_target_pairs",
                absl::StrCat("{",
                             absl::StrJoin(attr.source_target_pairs, ",",
                                           [](std::string* out, const std::pair<int64_t, int64_t>& pair) {
                                             absl::StrAppend(out, "{", pair.first, ",", pair.second, "}");
                                           }),
                             "}"));
  } else {
    writer->Add("replica_groups", attr.groups.ToString());
  }
  writer->Flag("constrain_layout", attr.constrain_layout);
  // XLA prints the flag before the dimension for reduce-scatter only.
  const bool flag_first = instruction.opcode() == Opcode::kReduceScatter;
  if (flag_first) writer->Flag("use_global_device_ids", attr.use_global_device_ids);
  if (attr.dimension.has_value()) writer->Dims("dimensions", {*attr.dimension});
  if (!flag_first) writer->Flag("use_global_device_ids", attr.use_global_device_ids);
}

constexpr AttributeRow kRows[] = {
    {Opcode::kAllGather, ReadCollective, WriteCollective},
    {Opcode::kAllGatherStart, ReadCollective, WriteCollective},
    {Opcode::kAllReduce, ReadCollective, WriteCollective},
    {Opcode::kAllReduceStart, ReadCollective, WriteCollective},
    {Opcode::kAllToAll, ReadCollective, WriteCollective},
    {Opcode::kCollectiveBroadcast, ReadCollective, WriteCollective},
    {Opcode::kCollectivePermute, ReadCollective, WriteCollective},
    {Opcode::kCollectivePermuteStart, ReadCollective, WriteCollective},
    {Opcode::kRaggedAllToAll, ReadCollective, WriteCollective},
    {Opcode::kReduceScatter, ReadCollective, WriteCollective},
};

}  // namespace

absl::Status ValidateReplicaGroups(const ReplicaGroupList& list) {
  if (list.form != ReplicaGroupList::Form::kIota) return absl::OkStatus();
  auto wrong = [] { return absl::InvalidArgumentError("replica_groups: the iota form does not fit its devices"); };
  int64_t devices = 1;
  for (int64_t extent : list.iota_reshape) {
    if (extent < 1 || extent > kMaxDevices) return wrong();
    devices *= extent;
    if (devices > kMaxDevices) return wrong();
  }
  if (list.num_groups < 1 || list.group_size < 1 || list.num_groups > kMaxDevices || list.group_size > kMaxDevices ||
      list.num_groups * list.group_size != devices) {
    return wrong();
  }
  if (list.iota_transpose.empty()) return absl::OkStatus();
  std::vector<int> sorted = list.iota_transpose;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() != list.iota_reshape.size()) return wrong();
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int>(i)) return wrong();
  }
  return absl::OkStatus();
}

std::string ReplicaGroupList::ToString() const {
  switch (form) {
    case Form::kMeshAxes:
      return absl::StrCat(mesh->ToString(), " ", AxesToString(*mesh, axes));
    case Form::kIota: {
      std::string text = absl::StrCat("[", num_groups, ",", group_size, "]<=[", absl::StrJoin(iota_reshape, ","), "]");
      bool identity = true;
      for (size_t i = 0; i < iota_transpose.size(); ++i) identity &= iota_transpose[i] == static_cast<int>(i);
      if (!identity) absl::StrAppend(&text, "T(", absl::StrJoin(iota_transpose, ","), ")");
      return text;
    }
    case Form::kExplicit:
      break;
  }
  return absl::StrCat("{",
                      absl::StrJoin(groups, ",",
                                    [](std::string* out, const std::vector<int64_t>& group) {
                                      absl::StrAppend(out, "{", absl::StrJoin(group, ","), "}");
                                    }),
                      "}");
}

absl::Span<const AttributeRow> CollectiveAttributeRows() { return kRows; }

}  // namespace gangway::hlo
