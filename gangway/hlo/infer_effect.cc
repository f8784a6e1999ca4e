// Shape inference of operations that meet the outside: feeds, sends, and the halves of asynchronous operations.
#include "gangway/hlo/infer_family.h"

namespace gangway::hlo {
namespace {

absl::StatusOr<Shape> Wanted(const InferQuery& query) {
  if (!query.HasWanted()) return Wrong("the result shape must be given");
  return query.wanted;
}

absl::Status CheckToken(const InferQuery& query, int64_t operand) {
  if (query.operand(operand).IsToken()) return absl::OkStatus();
  return Wrong("operand ", operand, " must be a token");
}

absl::StatusOr<Shape> Infeed(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckToken(query, 0));
  const std::vector<Shape>& parts = query.wanted.tuple();
  if (parts.size() != 2 || !parts[1].IsToken()) return Wrong("gives (data, token)");
  return query.wanted;
}

absl::StatusOr<Shape> Outfeed(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckToken(query, 1));
  return Shape::Token();
}

absl::StatusOr<Shape> Send(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckToken(query, 1));
  return Shape::Tuple({query.operand(0), Shape::Scalar(DType::kU32), Shape::Token()});
}

absl::StatusOr<Shape> SendDone(const InferQuery& query) { return Shape::Token(); }

absl::StatusOr<Shape> Recv(const InferQuery& query) {
  GW_RETURN_IF_ERROR(CheckToken(query, 0));
  if (query.wanted.tuple().size() != 3) return Wrong("gives (data, u32[], token)");
  return query.wanted;
}

absl::StatusOr<Shape> RecvDone(const InferQuery& query) {
  if (query.operand(0).tuple().size() != 3) return Wrong("takes the result of recv");
  return Shape::Tuple({query.operand(0).tuple()[0], Shape::Token()});
}

// (destination, source, context)
absl::StatusOr<Shape> CopyDone(const InferQuery& query) {
  if (query.operand(0).tuple().size() < 2) return Wrong("takes the result of copy-start");
  return query.operand(0).tuple()[0];
}

// ((operands), result, context...)
absl::StatusOr<Shape> AsyncDone(const InferQuery& query) {
  if (query.operand(0).tuple().size() < 2) return Wrong("takes the result of async-start or async-update");
  return query.operand(0).tuple()[1];
}

absl::StatusOr<Shape> AsyncUpdate(const InferQuery& query) { return query.operand(0); }

constexpr InferRow kRows[] = {
    {Opcode::kAsyncDone, AsyncDone}, {Opcode::kAsyncStart, Wanted}, {Opcode::kAsyncUpdate, AsyncUpdate},
    {Opcode::kCopyDone, CopyDone},   {Opcode::kCopyStart, Wanted},  {Opcode::kInfeed, Infeed},
    {Opcode::kOutfeed, Outfeed},     {Opcode::kRecv, Recv},         {Opcode::kRecvDone, RecvDone},
    {Opcode::kSend, Send},           {Opcode::kSendDone, SendDone},
};

}  // namespace

absl::Span<const InferRow> EffectInferRows() { return kRows; }

}  // namespace gangway::hlo
