// Reductions between workers.
//
// Small ones are exchanged directly: every worker sends its partial result to all others and each combines them. Large
// all-reduces are cut in chunks that the workers own in turn: a chunk's owner gets the others' partial results,
// combines them and sends the result back, so each byte crosses 2 (W-1)/W times and all links work at once. A
// reduce-scatter's pieces have their owners already.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "gangway/collective/move.h"
#include "gangway/collective/parcels.h"
#include "gangway/collective/reduce.h"

namespace gangway::collective {
namespace {

// Up to here the latency of a second round costs more than the bytes it saves.
constexpr int64_t kDirectBytes = 32 << 10;
// A chunk that has arrived is still in the cache when it is combined.
constexpr int64_t kChunkBytes = 256 << 10;
constexpr int kOwnAtOnce = 4;              // chunks of this worker that are on their way or being combined
constexpr int64_t kBlockBytes = 16 << 10;  // stays in a core's own cache
constexpr int64_t kBlockElements = 1024;   // at most 16 bytes each
static_assert(kBlockElements * 16 <= kBlockBytes);

using Memory = std::unique_ptr<char[]>;
Memory Allocate(int64_t bytes) { return Memory(new char[bytes + 1]); }

// One operand of all members: partial results and final ones of a run of its elements.
class Operand {
 public:
  Operand(const SpanningRun& run, size_t index) : reduction_(run.op->reduction) {
    for (int rank : run.sites.ranks[run.sites.here]) {
      sources_.push_back(run.members[rank].operands[index].data);
      targets_.push_back(run.members[rank].results[index].data);
    }
    const Array& first = run.members[run.sites.ranks[run.sites.here].front()].operands[index];
    dtype_ = first.dtype;
    dims_ = first.dims;
    count_ = ElementCount(first);
    packed_ = StorageBits(dtype_) < 8;
    wide_ = AccumulatorOf(dtype_);
  }

  int64_t count() const { return count_; }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t wide_bytes() const { return ByteWidth(wide_); }  // of an element of a partial result
  int64_t element_bytes() const { return ByteWidth(dtype_); }
  absl::Span<void* const> targets() const { return targets_; }
  // Whether results may travel from and to where they are; packed ones go one element a byte.
  bool packed() const { return packed_; }

  // The partial result in place, when an operand is one.
  const char* PartialInPlace(int64_t from) const {
    if (sources_.size() > 1 || packed_ || wide_ != dtype_) return nullptr;
    return static_cast<const char*>(sources_[0]) + from * element_bytes();
  }

  // This worker's partial result of [from, from + count).
  void Partial(int64_t from, int64_t count, char* out) const {
    absl::InlinedVector<const void*, 8> in(sources_.size());
    if (!packed_) {
      const int64_t block = kBlockBytes / element_bytes();
      for (int64_t at = 0; at < count; at += block) {
        for (size_t s = 0; s < in.size(); ++s) {
          in[s] = static_cast<const char*>(sources_[s]) + (from + at) * element_bytes();
        }
        ReducePartly(dtype_, reduction_, out + at * wide_bytes(), in, std::min(block, count - at));
      }
      return;
    }
    absl::InlinedVector<std::array<char, kBlockElements>, 8> unpacked(sources_.size());
    for (int64_t at = 0; at < count; at += kBlockElements) {
      const int64_t n = std::min(kBlockElements, count - at);
      for (size_t s = 0; s < in.size(); ++s) {
        Unpack(dtype_, unpacked[s].data(), sources_[s], from + at, n);
        in[s] = unpacked[s].data();
      }
      ReducePartly(dtype_, reduction_, out + at * wide_bytes(), in, n);
    }
  }

  // Combines the workers' partial results and writes elements [to, to + count) of `targets`. `sent`, when not null,
  // gets them one per element_bytes().
  void Combine(absl::Span<const char* const> partials, int64_t count, absl::Span<void* const> targets, int64_t to,
               char* sent) const {
    alignas(64) std::array<char, kBlockBytes> sum, rounded;
    absl::InlinedVector<const void*, 8> in(partials.size());
    for (int64_t at = 0; at < count; at += kBlockElements) {
      const int64_t n = std::min(kBlockElements, count - at);
      for (size_t s = 0; s < in.size(); ++s) in[s] = partials[s] + at * wide_bytes();
      // Through a block of our own, because a target may be one of the partial results.
      Reduce(wide_, reduction_, sum.data(), in, n);
      const char* values = sum.data();
      if (wide_ != dtype_) {
        RoundTo(dtype_, rounded.data(), sum.data(), n);
        values = rounded.data();
      }
      Store(values, n, targets, to + at);
      if (sent != nullptr) std::memcpy(sent + at * element_bytes(), values, n * element_bytes());
    }
  }

  void Store(const char* values, int64_t count, absl::Span<void* const> targets, int64_t to) const {
    for (void* target : targets) {
      if (packed_) {
        Pack(dtype_, target, to, values, count);
      } else if (static_cast<char*>(target) + to * element_bytes() != values) {
        std::memcpy(static_cast<char*>(target) + to * element_bytes(), values, count * element_bytes());
      }
    }
  }

 private:
  const Reduction reduction_;
  absl::InlinedVector<const void*, 8> sources_;
  absl::InlinedVector<void*, 8> targets_;
  DType dtype_{}, wide_{};
  absl::InlinedVector<int64_t, 6> dims_;
  int64_t count_ = 0;
  bool packed_ = false;
};

std::vector<Operand> OperandsOf(const SpanningRun& run) {
  std::vector<Operand> operands;
  const size_t count = run.members[run.sites.ranks[run.sites.here].front()].operands.size();
  for (size_t i = 0; i < count; ++i) operands.emplace_back(run, i);
  return operands;
}

// Everybody's partial results to everybody, all operands in one parcel.
class DirectAllReduce {
 public:
  DirectAllReduce(Parcels& parcels, std::vector<Operand> operands, int64_t bytes)
      : parcels_(parcels), operands_(std::move(operands)), bytes_(bytes), missing_(parcels.sites().count()) {
    for (int site = 0; site < parcels_.sites().count(); ++site) partials_.push_back(Allocate(bytes_));
  }

  static int64_t Padded(const Operand& operand) { return (operand.count() * operand.wide_bytes() + 15) / 16 * 16; }

  void Start() {
    const Sites& sites = parcels_.sites();
    char* own = partials_[sites.here].get();
    int64_t offset = 0;
    for (const Operand& operand : operands_) {
      operand.Partial(0, operand.count(), own + offset);
      offset += Padded(operand);
    }
    for (int site = 0; site < sites.count(); ++site) {
      if (site == sites.here) continue;
      parcels_.Send(site, 0, own, bytes_);
      parcels_.Receive(site, 0, partials_[site].get(), bytes_, [this] { Arrived(); });
    }
    Arrived();
  }

 private:
  void Arrived() {
    if (--missing_ > 0) return;
    int64_t offset = 0;
    for (const Operand& operand : operands_) {
      absl::InlinedVector<const char*, 8> partials;
      for (const Memory& partial : partials_) partials.push_back(partial.get() + offset);
      operand.Combine(partials, operand.count(), operand.targets(), 0, nullptr);
      offset += Padded(operand);
    }
  }

  Parcels& parcels_;  // keeps us
  const std::vector<Operand> operands_;
  const int64_t bytes_;
  std::vector<Memory> partials_;  // by site
  std::atomic<int> missing_;
};

// Chunks that the sites own in turn.
class ChunkedAllReduce {
 public:
  ChunkedAllReduce(Parcels& parcels, std::vector<Operand> operands)
      : parcels_(parcels), operands_(std::move(operands)) {
    const int sites = parcels_.sites().count();
    for (const Operand& operand : operands_) {
      // Whole cache lines, and no chunk begins inside a byte.
      const int64_t share = std::min(kChunkBytes / operand.wide_bytes(), (operand.count() + sites - 1) / sites);
      const int64_t size = std::max<int64_t>(64, (share + 63) / 64 * 64);
      for (int64_t from = 0; from < operand.count(); from += size) {
        auto chunk = std::make_unique<Chunk>();
        chunk->operand = &operand;
        chunk->from = from;
        chunk->count = std::min(size, operand.count() - from);
        chunk->owner = static_cast<int>(chunks_.size()) % sites;
        chunk->part = 2 * chunks_.size();
        chunks_.push_back(std::move(chunk));
      }
    }
  }

  void Start() {
    const Sites& sites = parcels_.sites();
    // What others wait for first.
    for (const auto& chunk : chunks_) {
      if (chunk->owner != sites.here) SendPartial(*chunk);
    }
    for (int i = 0; i < kOwnAtOnce; ++i) {
      auto slot = std::make_unique<Slot>();
      slot->partials.resize(sites.count());
      slot->memory.resize(sites.count());
      slot->bytes.resize(sites.count());
      slots_.push_back(std::move(slot));
    }
    for (const auto& slot : slots_) OwnNext(*slot);
  }

 private:
  struct Chunk {
    const Operand* operand = nullptr;
    int64_t from = 0, count = 0;
    int owner = 0;
    uint64_t part = 0;           // of partial results; the next one is the result's
    std::vector<Memory> memory;  // of what is sent or received packed or wide
  };
  // Takes one of the chunks this worker owns after the other, so that the memory they arrive in is used again.
  struct Slot {
    Chunk* chunk = nullptr;
    std::vector<const char*> partials;  // by site
    std::vector<Memory> memory;         // by site, as large as the largest chunk so far
    std::vector<int64_t> bytes;         // of that
    std::atomic<int> missing = 0;
  };

  // This worker's partial result, in place or in memory of the chunk.
  const char* Partial(Chunk& chunk) {
    if (const char* in_place = chunk.operand->PartialInPlace(chunk.from)) return in_place;
    chunk.memory.push_back(Allocate(chunk.count * chunk.operand->wide_bytes()));
    char* partial = chunk.memory.back().get();
    chunk.operand->Partial(chunk.from, chunk.count, partial);
    return partial;
  }

  void SendPartial(Chunk& chunk) {
    const Operand& operand = *chunk.operand;
    const char* partial = Partial(chunk);
    // The result may go where the partial result is: it only comes once the owner has that.
    char* result = static_cast<char*>(operand.targets()[0]) + chunk.from * operand.element_bytes();
    if (operand.packed()) {
      chunk.memory.push_back(Allocate(chunk.count));
      result = chunk.memory.back().get();
    }
    parcels_.Receive(chunk.owner, chunk.part + 1, result, chunk.count * operand.element_bytes(), [&chunk, result] {
      chunk.operand->Store(result, chunk.count, chunk.operand->targets(), chunk.from);
    });
    parcels_.Send(chunk.owner, chunk.part, partial, chunk.count * operand.wide_bytes());
  }

  Chunk* TakeOwn() {
    while (true) {
      const size_t next = next_.fetch_add(1, std::memory_order_relaxed);
      if (next >= chunks_.size()) return nullptr;
      if (chunks_[next]->owner == parcels_.sites().here) return chunks_[next].get();
    }
  }

  // Begins chunks until one has to be waited for; whoever brings the last of its partial results goes on.
  void OwnNext(Slot& slot) {
    const Sites& sites = parcels_.sites();
    while ((slot.chunk = TakeOwn()) != nullptr) {
      const int64_t bytes = slot.chunk->count * slot.chunk->operand->wide_bytes();
      slot.missing = sites.count();
      for (int site = 0; site < sites.count(); ++site) {
        if (site == sites.here) continue;
        slot.partials[site] = Room(slot, site, bytes);
        parcels_.Receive(site, slot.chunk->part, slot.memory[site].get(), bytes, [this, &slot] {
          if (--slot.missing > 0) return;
          Combine(slot);
          OwnNext(slot);
        });
      }
      slot.partials[sites.here] = Partial(*slot.chunk);
      if (--slot.missing > 0) return;
      Combine(slot);
    }
  }

  static const char* Room(Slot& slot, int site, int64_t bytes) {
    if (slot.bytes[site] < bytes) {
      slot.memory[site] = Allocate(bytes);
      slot.bytes[site] = bytes;
    }
    return slot.memory[site].get();
  }

  void Combine(Slot& slot) {
    Chunk& chunk = *slot.chunk;
    const Operand& operand = *chunk.operand;
    char* result = static_cast<char*>(operand.targets()[0]) + chunk.from * operand.element_bytes();
    char* copy = nullptr;
    if (operand.packed()) {
      chunk.memory.push_back(Allocate(chunk.count));
      result = copy = chunk.memory.back().get();
    }
    operand.Combine(slot.partials, chunk.count, operand.targets(), chunk.from, copy);
    for (int site = 0; site < parcels_.sites().count(); ++site) {
      if (site == parcels_.sites().here) continue;
      parcels_.Send(site, chunk.part + 1, result, chunk.count * operand.element_bytes());
    }
  }

  Parcels& parcels_;  // keeps us
  const std::vector<Operand> operands_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<size_t> next_ = 0;  // of the chunks, to be looked at
};

// The piece of each rank is combined by its worker. One parcel per operand between two workers: the pieces of the
// receiver's ranks one after the other.
class ReduceScatter {
 public:
  ReduceScatter(Parcels& parcels, std::vector<Operand> operands) : parcels_(parcels), operands_(std::move(operands)) {
    const int sites = parcels_.sites().count();
    const int64_t members = static_cast<int64_t>(parcels_.run().members.size());
    for (const Operand& operand : operands_) {
      auto state = std::make_unique<State>();
      state->operand = &operand;
      for (int64_t d = 0; d < parcels_.op().dimension; ++d) state->outer *= operand.dims()[d];
      state->piece = operand.count() / members;
      state->partials.resize(sites);
      state->missing = sites;
      states_.push_back(std::move(state));
    }
  }

  void Start() {
    const Sites& sites = parcels_.sites();
    for (size_t i = 0; i < states_.size(); ++i) {
      State& state = *states_[i];
      for (int site = 0; site < sites.count(); ++site) {
        if (site == sites.here) continue;
        const int64_t bytes = Bytes(state, site);
        state.partials[site] = Allocate(Bytes(state, sites.here));
        parcels_.Receive(site, i, state.partials[site].get(), Bytes(state, sites.here),
                         [this, &state] { Arrived(state); });
        state.sent.push_back(Allocate(bytes));
        Partials(state, site, state.sent.back().get());
        parcels_.Send(site, i, state.sent.back().get(), bytes);
      }
      state.partials[sites.here] = Allocate(Bytes(state, sites.here));
      Partials(state, sites.here, state.partials[sites.here].get());
      Arrived(state);
    }
  }

 private:
  struct State {
    const Operand* operand = nullptr;
    int64_t outer = 1;             // elements before the dimension
    int64_t piece = 0;             // elements of a result
    std::vector<Memory> partials;  // by site, of this worker's pieces
    std::vector<Memory> sent;
    std::atomic<int> missing = 0;
  };

  int64_t Bytes(const State& state, int site) const {
    return state.piece * state.operand->wide_bytes() * static_cast<int64_t>(parcels_.sites().ranks[site].size());
  }

  void Partials(const State& state, int site, char* out) const {
    if (state.piece == 0) return;
    const int64_t members = static_cast<int64_t>(parcels_.run().members.size());
    const int64_t run = state.piece / state.outer;
    for (int rank : parcels_.sites().ranks[site]) {
      for (int64_t o = 0; o < state.outer; ++o) {
        state.operand->Partial((o * members + rank) * run, run, out);
        out += run * state.operand->wide_bytes();
      }
    }
  }

  void Arrived(State& state) {
    if (--state.missing > 0) return;
    const auto& targets = state.operand->targets();
    for (size_t t = 0; t < targets.size(); ++t) {
      absl::InlinedVector<const char*, 8> partials;
      for (const Memory& partial : state.partials) {
        partials.push_back(partial.get() + static_cast<int64_t>(t) * state.piece * state.operand->wide_bytes());
      }
      state.operand->Combine(partials, state.piece, targets.subspan(t, 1), 0, nullptr);
    }
  }

  Parcels& parcels_;  // keeps us
  const std::vector<Operand> operands_;
  std::vector<std::unique_ptr<State>> states_;
};

template <typename Algorithm>
void Run(Parcels& parcels, std::shared_ptr<Algorithm> algorithm) {
  parcels.Keep(algorithm);
  algorithm->Start();
}

}  // namespace

void SpanReduction(Parcels& parcels) {
  std::vector<Operand> operands = OperandsOf(parcels.run());
  if (parcels.op().kind == Kind::kReduceScatter) {
    return Run(parcels, std::make_shared<ReduceScatter>(parcels, std::move(operands)));
  }
  int64_t bytes = 0;
  for (const Operand& operand : operands) bytes += DirectAllReduce::Padded(operand);
  if (bytes <= kDirectBytes) {
    return Run(parcels, std::make_shared<DirectAllReduce>(parcels, std::move(operands), bytes));
  }
  Run(parcels, std::make_shared<ChunkedAllReduce>(parcels, std::move(operands)));
}

}  // namespace gangway::collective
