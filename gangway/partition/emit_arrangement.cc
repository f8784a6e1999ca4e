#include "gangway/partition/emit_arrangement.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "gangway/partition/generic.h"
#include "gangway/partition/shard_pairs.h"

namespace gangway::partition {
namespace {

using hlo::Builder;
using hlo::Instruction;
using hlo::Opcode;

// More borders inside a shard than this are not worth an instruction each.
constexpr size_t kMaxBorders = 17;

class ArrangementEmitter {
 public:
  ArrangementEmitter(const ArrangementPlan& plan, int64_t dim, const AxisList& axes, Shape shape,
                     std::vector<Instruction*> sources, Context& context)
      : plan_(plan),
        dim_(dim),
        axes_(axes),
        sources_(std::move(sources)),
        context_(context),
        builder_(context.builder()),
        shape_(std::move(shape)) {
    shape_.set_dim(dim, plan.Tile());
  }

  Instruction* Run() {
    std::vector<Instruction*> received;
    for (const TransferRound& round : plan_.remote) {
      std::vector<ShardMove> moves;
      for (const Transfer& t : round.transfers) moves.push_back({t.sender, t.receiver});
      received.push_back(context_.collectives().Permute(Taken(round), ShardPairs(*context_.mesh(), axes_, moves)));
    }
    const std::vector<int64_t> borders = Borders();
    return borders.size() <= kMaxBorders ? ByCells(borders, received) : ByMasks(received);
  }

 private:
  using Table = std::map<int64_t, int64_t>;  // by shard; shards that are not in it may get any value

  // --- values that differ from shard to shard -----------------------------------------------------------------------
  // What is missing is chosen such that the whole is constant or linear, when that is possible.
  Instruction* PerShard(const Table& table) {
    const auto [first, value] = *table.begin();
    const auto [last, last_value] = *table.rbegin();
    const int64_t step = first == last ? 0 : (last_value - value) / (last - first);
    bool linear = true;
    for (const auto& [shard, v] : table) linear &= v == value + step * (shard - first);
    std::vector<int64_t> values(plan_.shards, value);
    for (int64_t shard = 0; shard < plan_.shards; ++shard) {
      if (linear) values[shard] = value + step * (shard - first);
      if (auto it = table.find(shard); it != table.end()) values[shard] = it->second;
    }
    return context_.coordinates().PerShard(context_.mesh(), axes_, values);
  }

  static bool IsConstant(const Table& table) {
    return std::all_of(table.begin(), table.end(),
                       [&](const auto& entry) { return entry.second == table.begin()->second; });
  }

  // pred[] that is true on the given shards.
  Instruction* IsOneOf(const std::vector<int64_t>& shards) {
    if (shards.size() == 1) {
      return builder_.Compare(hlo::ComparisonDirection::kEq, context_.coordinates().Of(context_.mesh(), axes_),
                              builder_.Index(shards[0]));
    }
    std::vector<int64_t> flags(plan_.shards, 0);
    for (int64_t shard : shards) flags[shard] = 1;
    return builder_.Compare(hlo::ComparisonDirection::kNe,
                            context_.coordinates().PerShard(context_.mesh(), axes_, flags), builder_.Index(0));
  }

  Instruction* Select(Instruction* scalar, Instruction* on_true, Instruction* on_false) {
    const Shape mask = WithDType(WithoutLayout(on_true->shape()), DType::kPred);
    return builder_.Select(builder_.BroadcastScalar(scalar, mask), on_true, on_false);
  }

  // --- sending ------------------------------------------------------------------------------------------------------
  // Before the transfer's own elements in what the round sends: the piece must not end behind the source.
  int64_t Surplus(const Transfer& t, int64_t length) const {
    if (sources_[t.source]->shape().rank() == 0) return 0;
    const int64_t extent = std::max(sources_[t.source]->shape().dim(dim_), length);
    return std::max<int64_t>(0, t.from + length - extent);
  }

  // What every sender sends.
  Instruction* Taken(const TransferRound& round) {
    std::map<int, Table> from;
    for (const Transfer& t : round.transfers) from[t.source][t.sender] = t.from - Surplus(t, round.length);
    Instruction* piece = nullptr;
    for (const auto& [source, table] : from) {
      Instruction* part = Taken(sources_[source], table, round.length);
      std::vector<int64_t> senders;
      for (const auto& [sender, start] : table) senders.push_back(sender);
      piece = piece == nullptr ? part : Select(IsOneOf(senders), part, piece);
    }
    return piece;
  }

  // `length` elements of a source, from its own place on every shard on.
  Instruction* Taken(Instruction* source, const Table& from, int64_t length) {
    if (source->shape().rank() == 0) {
      Shape shape = shape_;
      shape.set_dim(dim_, length);
      return builder_.BroadcastScalar(source, shape);
    }
    const int64_t extent = source->shape().dim(dim_);
    if (extent < length) source = Padded(source, 0, length - extent);
    if (IsConstant(from)) return Cut(source, from.begin()->second, from.begin()->second + length);
    return DynamicCut(source, PerShard(from), length);
  }

  // --- putting together, where the borders between pieces are few -------------------------------------------------
  // Places in the shard where on some device one piece ends or begins.
  std::vector<int64_t> Borders() const {
    std::set<int64_t> borders = {0, plan_.Tile()};
    for (const auto* rounds : {&plan_.local, &plan_.remote}) {
      for (const TransferRound& round : *rounds) {
        for (const Transfer& t : round.transfers) {
          borders.insert(t.to);
          borders.insert(t.to + t.length);
        }
      }
    }
    return {borders.begin(), borders.end()};
  }

  // What some devices have of a cell: elements of a source of their own, or of what a round brought.
  struct Part {
    Instruction* of = nullptr;
    int round = -1;  // that brought it
    Table from;      // by shard
  };

  Instruction* ByCells(const std::vector<int64_t>& borders, const std::vector<Instruction*>& received) {
    std::vector<Instruction*> cells;
    for (size_t i = 0; i + 1 < borders.size(); ++i) {
      cells.push_back(Cell(borders[i], borders[i + 1], received));
    }
    return cells.size() == 1 ? cells[0] : builder_.Concatenate(std::move(cells), dim_);
  }

  Instruction* Cell(int64_t begin, int64_t end, const std::vector<Instruction*>& received) {
    std::vector<Part> parts;
    const auto add = [&](Instruction* of, int round, int64_t shard, int64_t from) {
      auto it = std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.of == of; });
      if (it == parts.end()) it = parts.insert(parts.end(), Part{of, round, {}});
      it->from[shard] = from;
    };
    for (const TransferRound& round : plan_.local) {
      for (const Transfer& t : round.transfers) {
        if (t.to > begin || t.to + t.length < end) continue;
        add(sources_[t.source], -1, t.receiver, t.from + begin - t.to);
      }
    }
    for (size_t r = 0; r < plan_.remote.size(); ++r) {
      for (const Transfer& t : plan_.remote[r].transfers) {
        if (t.to > begin || t.to + t.length < end) continue;
        add(received[r], static_cast<int>(r), t.receiver, Surplus(t, plan_.remote[r].length) + begin - t.to);
      }
    }
    if (parts.size() == 2 && parts[1].round >= 0 && BringsZeros(parts[1].round, parts[0])) parts.erase(parts.begin());
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.from.size() > b.from.size(); });
    Instruction* cell = nullptr;
    for (const Part& part : parts) {
      Instruction* value = Taken(part.of, part.from, end - begin);
      std::vector<int64_t> shards;
      for (const auto& [shard, from] : part.from) shards.push_back(shard);
      cell = cell == nullptr ? value : Select(IsOneOf(shards), value, cell);
    }
    if (cell != nullptr) return cell;
    Shape shape = shape_;
    shape.set_dim(dim_, end - begin);
    return builder_.Splat(shape, 0);
  }

  // A permute brings zeros where it brings nothing.
  bool BringsZeros(int round, const Part& wanted) const {
    if (wanted.round >= 0 || wanted.of->shape().rank() != 0 || !IsIdentity(*wanted.of, Reduction::kSum)) return false;
    const auto& transfers = plan_.remote[round].transfers;
    return std::none_of(transfers.begin(), transfers.end(),
                        [&](const Transfer& t) { return wanted.from.contains(t.receiver); });
  }

  // --- putting together, where every device has other borders ------------------------------------------------------
  Instruction* ByMasks(const std::vector<Instruction*>& received) {
    buffer_ = builder_.Splat(shape_, 0);
    for (const TransferRound& round : plan_.local) Write(round, Taken(round));
    for (size_t r = 0; r < plan_.remote.size(); ++r) Write(plan_.remote[r], received[r]);
    return buffer_;
  }

  void Write(const TransferRound& round, Instruction* piece) {
    Table to, surplus, lengths;
    for (const Transfer& t : round.transfers) {
      to[t.receiver] = t.to;
      surplus[t.receiver] = Surplus(t, round.length);
      lengths[t.receiver] = t.length;
    }
    WriteMasked(piece, to, surplus, lengths);
  }

  // Elements of the piece that lie at other places, or are other ones, from shard to shard.
  void WriteMasked(Instruction* piece, const Table& to, const Table& surplus, const Table& lengths) {
    const int64_t tile = plan_.Tile();
    Table start, end;
    for (const auto& [shard, place] : to) {
      start[shard] = tile - (place - surplus.at(shard));
      end[shard] = place + lengths.at(shard);
    }
    Instruction* placed = DynamicCut(Padded(piece, tile, tile), PerShard(start), tile);
    const Shape line(DType::kS32, {tile});
    Instruction* index = builder_.Iota(line, 0);
    // Shards that receive nothing have an empty range.
    std::vector<int64_t> begins(plan_.shards, 0), ends(plan_.shards, 0);
    for (const auto& [shard, place] : to) begins[shard] = place, ends[shard] = end.at(shard);
    const auto bound = [&](const std::vector<int64_t>& values) {
      return builder_.BroadcastScalar(context_.coordinates().PerShard(context_.mesh(), axes_, values), line);
    };
    Instruction* inside =
        builder_.Binary(Opcode::kAnd, builder_.Compare(hlo::ComparisonDirection::kGe, index, bound(begins)),
                        builder_.Compare(hlo::ComparisonDirection::kLt, index, bound(ends)));
    Instruction* mask = builder_.Broadcast(inside, WithDType(shape_, DType::kPred), {dim_});
    buffer_ = builder_.Select(mask, placed, buffer_);
  }

  Instruction* Cut(Instruction* x, int64_t begin, int64_t end) {
    if (begin == 0 && end == x->shape().dim(dim_)) return x;
    DimVector starts(x->shape().rank(), 0), limits = x->shape().dims();
    starts[dim_] = begin;
    limits[dim_] = end;
    return builder_.Slice(x, starts, limits);
  }

  Instruction* DynamicCut(Instruction* x, Instruction* start, int64_t length) {
    std::vector<Instruction*> starts(x->shape().rank(), builder_.Index(0));
    starts[dim_] = start;
    DimVector sizes = x->shape().dims();
    sizes[dim_] = length;
    return builder_.DynamicSlice(x, std::move(starts), std::move(sizes));
  }

  Instruction* Padded(Instruction* x, int64_t low, int64_t high) {
    std::vector<hlo::PadDim> pad(x->shape().rank());
    pad[dim_].low = low;
    pad[dim_].high = high;
    return builder_.Pad(x, builder_.Constant(Literal(Shape::Scalar(x->shape().dtype()))), std::move(pad));
  }

  const ArrangementPlan& plan_;
  const int64_t dim_;
  const AxisList& axes_;
  std::vector<Instruction*> sources_;
  Context& context_;
  Builder& builder_;
  Shape shape_;  // of the result's shard
  Instruction* buffer_ = nullptr;
};

}  // namespace

Instruction* EmitArrangement(const ArrangementPlan& plan, int64_t dim, const AxisList& axes, Shape shape,
                             std::vector<Instruction*> sources, Context& context) {
  return ArrangementEmitter(plan, dim, axes, std::move(shape), std::move(sources), context).Run();
}

double ArrangementCost(const ArrangementPlan& plan, double row_bytes) {
  return static_cast<double>(plan.Rows()) * row_bytes + kBytesPerCollective * static_cast<double>(plan.remote.size());
}

}  // namespace gangway::partition
