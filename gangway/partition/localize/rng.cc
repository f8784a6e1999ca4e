// rng-bit-generator in shards. The bits are a function of key and counter, a block of them for each counter, laid out
// one after the other: a shard of the most major dimension is a stretch that begins so many counters later.
#include <utility>
#include <vector>

#include "gangway/base/status.h"
#include "gangway/mesh/geometry.h"
#include "gangway/partition/localize/table.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// Elements that one counter of Philox-4x32 gives (Salmon et al., SC 2011): four words of up to 32 bits.
int64_t BlockOf(const Shape& bits) { return BitWidth(bits.dtype()) == 64 ? 2 : 4; }

// The first dimension of more than one element.
int64_t MajorDim(const Shape& bits) {
  int64_t dim = 0;
  while (dim < bits.rank() && bits.dim(dim) == 1) ++dim;
  return dim;
}

// The state as its words u64[1]: the key and a counter of 128 bits. Of a state of two words the key stands in for the
// counter's high half.
struct Philox {
  Instruction *key, *low, *high;
};

Philox WordsOf(Instruction* state, Builder& builder) {
  const auto word = [&](int64_t i) { return builder.Slice(state, {i}, {i + 1}); };
  return {word(0), word(1), word(state->shape().dim(0) > 2 ? 2 : 0)};
}

Philox Advanced(const Philox& state, Instruction* blocks, Builder& builder) {
  Instruction* low = builder.Binary(Opcode::kAdd, state.low, blocks);
  Instruction* carry = builder.Convert(builder.Compare(hlo::ComparisonDirection::kLt, low, blocks), DType::kU64);
  return {state.key, low, builder.Binary(Opcode::kAdd, state.high, carry)};
}

Instruction* WordConstant(int64_t value, Builder& builder) {
  Literal word(Shape(DType::kU64, {1}));
  StoreInt64(DType::kU64, value, word.data());
  return builder.Constant(std::move(word));
}

// How the bits are made; nowhere split when shards of the wanted split are no whole blocks of the stream.
Sharding SplitOf(const Instruction& instruction, Context& context) {
  const Shape& bits = instruction.shape().tuple()[1];
  const Sharding wanted = context.Wanted(instruction, 1);
  Sharding split = context.Replicated(bits.rank());
  const int64_t major = MajorDim(bits);
  if (!SameMesh(wanted.mesh, context.mesh()) || !wanted.manual.empty() || major == bits.rank()) return split;
  const int64_t shards = wanted.ShardCount(major);
  if (bits.ElementCount() % (shards * BlockOf(bits)) != 0 || bits.dim(major) % shards != 0) return split;
  split.dims[major].axes = wanted.dims[major].axes;
  return split;
}

}  // namespace

absl::Status LocalizeRngBitGenerator(const Instruction& instruction, Context& context) {
  const LocalValue& state = context.Value(*instruction.operand(0));
  const Shape bits = WithoutLayout(instruction.shape().tuple()[1]);
  const Sharding split = SplitOf(instruction, context);
  if (split.IsReplicated() || instruction.attr<hlo::RngBitGeneratorAttr>().algorithm == hlo::RngAlgorithm::kThreeFry ||
      state.global.dtype() != DType::kU64 || !state.sharding.manual.empty()) {
    return LocalizeByRule(instruction, context);
  }
  Builder& builder = context.builder();
  GW_ASSIGN_OR_RETURN(Instruction * whole_state, context.Replicate(state));
  const Philox words = WordsOf(whole_state, builder);

  const Shape shard = ShardShape(bits, split);
  const AxisList& axes = split.dims[MajorDim(bits)].axes;
  Instruction* place = builder.Reshape(context.coordinates().Of(split.mesh, axes), {1});
  Instruction* blocks = builder.Binary(Opcode::kMultiply, builder.Convert(place, DType::kU64),
                                       WordConstant(shard.ElementCount() / BlockOf(bits), builder));
  const Philox own = Advanced(words, blocks, builder);
  const Shape own_state(DType::kU64, {3});
  Instruction* made = context.Clone(instruction, Shape::Tuple({own_state, shard}),
                                    {builder.Concatenate({own.key, own.low, own.high}, 0)});
  made->mutable_attr<hlo::RngBitGeneratorAttr>().algorithm = hlo::RngAlgorithm::kPhilox;

  const Philox after = Advanced(words, WordConstant(bits.ElementCount() / BlockOf(bits), builder), builder);
  std::vector<Instruction*> next = {after.key, after.low};
  if (state.global.dim(0) > 2) next.push_back(after.high);
  context.Set(instruction, {LocalValue{builder.Concatenate(next, 0), context.Replicated(1), state.global, nullptr},
                            LocalValue{builder.GetTupleElement(made, 1), split, bits, nullptr}});
  return absl::OkStatus();
}

}  // namespace gangway::partition
