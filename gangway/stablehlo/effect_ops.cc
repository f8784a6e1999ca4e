// Tokens and what they order: send, receive, infeed, outfeed.
#include <utility>

#include "gangway/stablehlo/op_table.h"

namespace gangway::stablehlo {
namespace {

using hlo::Instruction;
using hlo::Opcode;

absl::Status AfterAll(OpContext& context) { return context.FinishWith(Opcode::kAfterAll, context.operands()); }

absl::StatusOr<hlo::ChannelAttr> ReadChannel(const OpView& op) {
  hlo::ChannelAttr attr;
  GW_ASSIGN_OR_RETURN(attr.channel_id, op.Int("channel_id"));
  GW_ASSIGN_OR_RETURN(attr.is_host_transfer, op.Bool("is_host_transfer"));
  return attr;
}

// Operands but the last, which must be a token, as one value.
absl::StatusOr<Instruction*> Payload(OpContext& context) {
  const std::vector<Instruction*>& operands = context.operands();
  if (operands.empty() || !operands.back()->shape().IsToken()) return OpContext::Error("the last operand is no token");
  if (operands.size() == 2) return operands.front();
  return context.EmitTuple(std::vector<Instruction*>(operands.begin(), operands.end() - 1));
}

// Results but the last, which must be a token, as one shape.
absl::StatusOr<Shape> ReceivedShape(const OpContext& context) {
  const std::vector<Shape>& shapes = context.result_shapes();
  if (shapes.empty() || !shapes.back().IsToken()) return OpContext::Error("the last result is no token");
  if (shapes.size() == 2) return shapes.front();
  return Shape::Tuple(std::vector<Shape>(shapes.begin(), shapes.end() - 1));
}

// Results out of (payload, token).
absl::Status FinishReceived(OpContext& context, Instruction* received) {
  const Shape& payload_shape = received->shape().tuple()[0];
  const size_t count = context.result_shapes().size() - 1;
  Instruction* payload = context.Emit(Opcode::kGetTupleElement, payload_shape, {received}, hlo::TupleIndexAttr{0});
  std::vector<Instruction*> results;
  if (count == 1) {
    results.push_back(payload);
  } else {
    for (size_t i = 0; i < count; ++i) {
      results.push_back(context.Emit(Opcode::kGetTupleElement, context.result_shapes()[i], {payload},
                                     hlo::TupleIndexAttr{static_cast<int64_t>(i)}));
    }
  }
  results.push_back(context.Emit(Opcode::kGetTupleElement, Shape::Token(), {received}, hlo::TupleIndexAttr{1}));
  return context.FinishEach(results);
}

absl::Status Send(OpContext& context) {
  GW_ASSIGN_OR_RETURN(hlo::ChannelAttr attr, ReadChannel(context.op()));
  GW_ASSIGN_OR_RETURN(Instruction * payload, Payload(context));
  GW_ASSIGN_OR_RETURN(hlo::FrontendAttributes frontend, context.OwnFrontendAttributes());
  const Shape state = Shape::Tuple({payload->shape(), Shape::Scalar(DType::kU32), Shape::Token()});
  Instruction* send = context.Emit(Opcode::kSend, state, {payload, context.operands().back()}, attr);
  Instruction* done = context.Emit(Opcode::kSendDone, Shape::Token(), {send}, attr);
  send->mutable_frontend_attributes() = frontend;
  done->mutable_frontend_attributes() = std::move(frontend);
  return context.FinishEach({done});
}

absl::Status Receive(OpContext& context) {
  GW_ASSIGN_OR_RETURN(hlo::ChannelAttr attr, ReadChannel(context.op()));
  GW_ASSIGN_OR_RETURN(Shape payload, ReceivedShape(context));
  GW_ASSIGN_OR_RETURN(hlo::FrontendAttributes frontend, context.OwnFrontendAttributes());
  const Shape state = Shape::Tuple({payload, Shape::Scalar(DType::kU32), Shape::Token()});
  Instruction* receive = context.Emit(Opcode::kRecv, state, {context.operand(0)}, attr);
  Instruction* done = context.Emit(Opcode::kRecvDone, Shape::Tuple({payload, Shape::Token()}), {receive}, attr);
  receive->mutable_frontend_attributes() = frontend;
  done->mutable_frontend_attributes() = std::move(frontend);
  return FinishReceived(context, done);
}

absl::Status Infeed(OpContext& context) {
  GW_ASSIGN_OR_RETURN(absl::string_view config, context.op().String("infeed_config"));
  GW_ASSIGN_OR_RETURN(Shape payload, ReceivedShape(context));
  hlo::FeedAttr attr;
  attr.config = std::string(config);
  return FinishReceived(context, context.Emit(Opcode::kInfeed, Shape::Tuple({payload, Shape::Token()}),
                                              {context.operand(0)}, std::move(attr)));
}

absl::Status Outfeed(OpContext& context) {
  GW_ASSIGN_OR_RETURN(absl::string_view config, context.op().String("outfeed_config"));
  GW_ASSIGN_OR_RETURN(Instruction * payload, Payload(context));
  hlo::FeedAttr attr;
  attr.config = std::string(config);
  attr.outfeed_shape = payload->shape();
  return context.FinishWith(Opcode::kOutfeed, {payload, context.operands().back()}, std::move(attr));
}

}  // namespace

void AddEffectOps(OpTable& table) {
  for (const OpRow& row : {
           OpRow{"vhlo.after_all_v1", kAny, 1, 0, AfterAll},
           OpRow{"vhlo.create_token_v1", 0, 1, 0, AfterAll},
           OpRow{"vhlo.infeed_v1", 1, kAny, 0, Infeed},
           OpRow{"vhlo.outfeed_v1", kAny, 1, 0, Outfeed},
           OpRow{"vhlo.recv_v1", 1, kAny, 0, Receive},
           OpRow{"vhlo.recv_v2", 1, kAny, 0, Receive},
           OpRow{"vhlo.send_v1", kAny, 1, 0, Send},
           OpRow{"vhlo.send_v2", kAny, 1, 0, Send},
       }) {
    table.emplace(row.name, row);
  }
}

}  // namespace gangway::stablehlo
