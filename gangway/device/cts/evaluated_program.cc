#include "gangway/device/cts/evaluated_program.h"

#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "gangway/base/status.h"
#include "gangway/collective/gang.h"
#include "gangway/collective/move.h"
#include "gangway/eval/evaluate.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/verifier.h"

namespace gangway::device {
namespace {

using collective::Kind;
using eval::Value;

constexpr std::pair<absl::string_view, Kind> kCollectives[] = {
    {"gangway.all_reduce", Kind::kAllReduce},         {"gangway.all_gather", Kind::kAllGather},
    {"gangway.reduce_scatter", Kind::kReduceScatter}, {"gangway.all_to_all", Kind::kAllToAll},
    {"gangway.collective_permute", Kind::kPermute},   {"gangway.collective_broadcast", Kind::kBroadcast},
};

// The text after `name = ` in an attribute dictionary, up to the end of the dictionary.
absl::StatusOr<absl::string_view> AfterName(absl::string_view config, absl::string_view name) {
  const std::string wanted = absl::StrCat(name, " = ");
  for (size_t at = config.find(wanted); at != config.npos; at = config.find(wanted, at + 1)) {
    if (at > 0 && (config[at - 1] == '{' || config[at - 1] == ' ')) return config.substr(at + wanted.size());
  }
  return absl::InvalidArgumentError(absl::StrCat("attribute ", name, " is missing in ", config));
}

absl::StatusOr<int64_t> Int(absl::string_view config, absl::string_view name) {
  GW_ASSIGN_OR_RETURN(absl::string_view text, AfterName(config, name));
  int64_t value;
  if (!absl::SimpleAtoi(text.substr(0, text.find(' ')), &value)) {
    return absl::InvalidArgumentError(absl::StrCat("attribute ", name, " is not an i64"));
  }
  return value;
}

absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view config, absl::string_view name) {
  GW_ASSIGN_OR_RETURN(absl::string_view text, AfterName(config, name));
  text = text.substr(0, text.find('>'));
  std::vector<int64_t> values;
  const size_t colon = text.find(':');
  if (colon == text.npos) return values;
  for (absl::string_view item : absl::StrSplit(text.substr(colon + 1), ',')) {
    if (!absl::SimpleAtoi(item, &values.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat("attribute ", name, " is not an array<i64>"));
    }
  }
  return values;
}

absl::StatusOr<collective::Op> ParseOp(Kind kind, absl::string_view config, int participants) {
  collective::Op op;
  op.kind = kind;
  GW_ASSIGN_OR_RETURN(op.key, Int(config, "key"));
  if (kind == Kind::kAllReduce || kind == Kind::kReduceScatter) {
    GW_ASSIGN_OR_RETURN(absl::string_view text, AfterName(config, "kind"));
    const std::vector<absl::string_view> quoted = absl::StrSplit(text, '"');
    if (quoted.size() < 3) return absl::InvalidArgumentError("attribute kind is not a string");
    GW_ASSIGN_OR_RETURN(op.reduction, collective::ParseReduction(quoted[1]));
  }
  if (kind == Kind::kAllGather || kind == Kind::kReduceScatter || kind == Kind::kAllToAll) {
    GW_ASSIGN_OR_RETURN(op.dimension, Int(config, "dimension"));
  }
  if (kind == Kind::kAllToAll) {
    GW_ASSIGN_OR_RETURN(op.concat_dimension, Int(config, "concat_dimension"));
  }
  if (kind == Kind::kPermute) {
    GW_ASSIGN_OR_RETURN(std::vector<int64_t> pairs, Ints(config, "pairs"));
    return collective::MakePermuteOp(std::move(op), pairs, participants);
  }
  GW_ASSIGN_OR_RETURN(std::vector<int64_t> groups, Ints(config, "groups"));
  GW_ASSIGN_OR_RETURN(int64_t group_size, Int(config, "group_size"));
  return collective::MakeGroupOp(std::move(op), groups, group_size, participants);
}

// Collectives see memory as devices have it: narrow elements packed.
class PackedArray {
 public:
  explicit PackedArray(const Shape& shape)
      : bytes_(collective::PackedBytes(shape.dtype(), shape.ElementCount())),
        array_{shape.dtype(), {shape.dims().begin(), shape.dims().end()}, bytes_.data()} {}
  explicit PackedArray(const Literal& literal) : PackedArray(literal.shape()) {
    if (Packs()) {
      collective::Pack(array_.dtype, bytes_.data(), 0, literal.data(), literal.shape().ElementCount());
    } else if (!bytes_.empty()) {
      std::memcpy(bytes_.data(), literal.data(), bytes_.size());
    }
  }

  const collective::Array& array() const { return array_; }
  Literal ToLiteral() const {
    Literal literal(Shape(array_.dtype, DimVector(array_.dims.begin(), array_.dims.end())));
    if (Packs()) {
      collective::Unpack(array_.dtype, literal.data(), bytes_.data(), 0, literal.shape().ElementCount());
    } else if (!bytes_.empty()) {
      std::memcpy(literal.data(), bytes_.data(), bytes_.size());
    }
    return literal;
  }

 private:
  bool Packs() const { return collective::StorageBits(array_.dtype) < 8; }

  std::vector<char> bytes_;
  collective::Array array_;
};

absl::StatusOr<Value> RunCollective(Kind kind, const hlo::Instruction& call, absl::Span<const Value> operands,
                                    const LaunchContext& launch) {
  if (launch.gang == nullptr) return absl::FailedPreconditionError("the launch has no gang");
  GW_ASSIGN_OR_RETURN(collective::Op op,
                      ParseOp(kind, call.attr<hlo::CustomCallAttr>().backend_config, launch.num_partitions));
  std::vector<PackedArray> in, out;
  for (const Value& operand : operands) in.emplace_back(operand.array());
  for (const Shape& shape : Leaves(call.shape())) out.emplace_back(shape);
  collective::Contribution contribution;
  for (const PackedArray& array : in) contribution.operands.push_back(array.array());
  for (const PackedArray& array : out) contribution.results.push_back(array.array());
  absl::Notification done;
  absl::Status status;
  contribution.done = [&](const absl::Status& outcome) {
    status = outcome;
    done.Notify();
  };
  launch.gang->Join(launch.partition, std::make_shared<const collective::Op>(std::move(op)), std::move(contribution));
  done.WaitForNotification();  // the gang's deadline bounds it
  GW_RETURN_IF_ERROR(status);
  if (!call.shape().IsTuple()) return Value(out[0].ToLiteral());
  std::vector<Value> results;
  for (const PackedArray& array : out) results.emplace_back(array.ToLiteral());
  return Value::Tuple(std::move(results));
}

eval::EvaluateOptions HostedCalls(const LaunchContext& launch) {
  eval::EvaluateOptions options;
  options.custom_calls["gangway.partition_id"] = [&launch](const auto&, auto) -> absl::StatusOr<Value> {
    return Value(Literal::Scalar<uint32_t>(DType::kU32, static_cast<uint32_t>(launch.partition)));
  };
  for (const auto& [target, kind] : kCollectives) {
    options.custom_calls[std::string(target)] = [&launch, kind = kind](const hlo::Instruction& call,
                                                                       absl::Span<const Value> operands) {
      return RunCollective(kind, call, operands, launch);
    };
  }
  return options;
}

ArrayType TypeOf(const Shape& shape) { return {shape.dtype(), shape.dims()}; }

class Evaluated final : public SimProgram {
 public:
  explicit Evaluated(std::unique_ptr<hlo::Module> module) : module_(std::move(module)) {
    for (const hlo::Instruction* parameter : module_->entry()->parameters()) {
      inputs_.push_back(TypeOf(parameter->shape()));
    }
    for (const Shape& shape : Leaves(module_->entry()->root()->shape())) outputs_.push_back(TypeOf(shape));
    for (const auto& alias : module_->config().aliases) donated_.push_back(alias.parameter);
    for (const auto& donor : module_->config().donors) donated_.push_back(donor.parameter);
  }

  const std::vector<ArrayType>& inputs() const override { return inputs_; }
  const std::vector<ArrayType>& outputs() const override { return outputs_; }
  const std::vector<int64_t>& donated() const override { return donated_; }
  absl::StatusOr<std::vector<SimValue>> Run(absl::Span<const SimValue> inputs,
                                            const LaunchContext& launch) const override {
    std::vector<Value> arguments;
    for (size_t i = 0; i < inputs.size(); ++i) {
      arguments.emplace_back(Literal(Shape(inputs_[i].dtype, inputs_[i].dims), *inputs[i]));
    }
    GW_ASSIGN_OR_RETURN(std::vector<Value> results,
                        eval::EvaluateValues(*module_, {arguments}, 1, HostedCalls(launch)));
    std::vector<SimValue> outputs;
    AppendLeaves(results[0], outputs);
    return outputs;
  }

 private:
  static void AppendLeaves(const Value& value, std::vector<SimValue>& out) {
    if (value.IsTuple()) {
      for (const Value& element : value.elements()) AppendLeaves(element, out);
    } else {
      const absl::Span<const char> bytes = value.array().bytes();
      out.push_back(std::make_shared<const std::vector<char>>(bytes.begin(), bytes.end()));
    }
  }

  const std::unique_ptr<const hlo::Module> module_;
  std::vector<ArrayType> inputs_, outputs_;
  std::vector<int64_t> donated_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const SimProgram>> EvaluatedProgram(const CompileRequest& request) {
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, hlo::DeserializeModule(request.hlo));
  GW_RETURN_IF_ERROR(hlo::Verify(*module));
  return std::make_shared<const Evaluated>(std::move(module));
}

}  // namespace gangway::device
