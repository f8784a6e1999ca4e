// Makes one random program. Internal to the generator; the families of operations are one file each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "gangway/hlo/builder.h"
#include "tests/equivalence/random_module.h"

namespace gangway::equivalence {

// The same program for the same seed. Values that later operations may take lie in a pool; every operation picks its
// operands there and leaves null where they do not suit it.
class Generator {
 public:
  using Instruction = hlo::Instruction;

  Generator(uint64_t seed, const RandomOptions& options);
  std::unique_ptr<hlo::Module> Run();

 private:
  // An operation and how often it is made, relative to the others.
  struct Family {
    int weight;
    Instruction* (Generator::*make)();
  };
  static const std::vector<Family>& Families();
  static const std::vector<Family>& ControlFamilies();

  // --- choices (random_module.cc) ----------------------------------------------------------------------------------
  int Below(int64_t n) { return n <= 0 ? 0 : static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  DType RandomType();
  int64_t RandomExtent();
  Shape RandomShape();
  Sharding RandomSharding(const Shape& shape, bool even);
  void Annotate(Instruction* instruction, bool even);
  void ShardEverything();

  Instruction* Any() { return pool_[Below(static_cast<int64_t>(pool_.size()))]; }
  Instruction* AnyOfRank(int64_t at_least);  // null when eight draws find none
  Instruction* Like(const Shape& shape);     // a value of that shape, a constant where none is found
  Instruction* Filled(const Shape& shape);   // the same, but no constant
  Instruction* Keep(Instruction* made);
  Instruction* SharingCall(Instruction* x);  // a user's annotation: the custom call `Sharding`
  // One more operation.
  void Step();
  // Makes operations inside another computation, whose values are `values`.
  Instruction* Within(hlo::Computation* computation, std::vector<Instruction*> values, bool control_flow,
                      const std::function<Instruction*()>& make);

  // --- random_elementwise.cc ---------------------------------------------------------------------------------------
  Instruction* Tamed(Instruction* x);  // keeps numbers small: products of products would overflow floats
  Instruction* Elementwise();
  Instruction* Choice();
  Instruction* RandomBits();

  // --- random_movement.cc ------------------------------------------------------------------------------------------
  DimVector Permutation(int64_t rank);
  Instruction* Broadcast();
  Instruction* Transpose();
  Instruction* Reshape();
  Instruction* Slice();
  Instruction* Pad();
  Instruction* Concatenate();
  Instruction* Reverse();
  Instruction* Roll();
  Instruction* Iota();

  // --- random_contraction.cc ---------------------------------------------------------------------------------------
  hlo::WindowDim RandomWindow(int64_t extent, bool dilate_base);
  Instruction* Reduce();
  Instruction* Dot();
  Instruction* Convolution();
  Instruction* ReduceWindow();
  Instruction* Cumulative();
  Instruction* SelectAndScatter();

  // --- random_indexing.cc ------------------------------------------------------------------------------------------
  std::vector<Instruction*> Starts(const Shape& shape);
  DimVector Part(const Shape& shape);
  Instruction* Indices(int64_t n, int64_t extent);
  Instruction* DynamicSlice();
  Instruction* DynamicUpdateSlice();
  Instruction* Gather();
  Instruction* GatherInBatches();
  Instruction* Scatter();

  // --- random_ordering.cc ------------------------------------------------------------------------------------------
  hlo::Computation* Compare(DType dtype, int operands);
  Instruction* Sort();
  Instruction* SortPairs();
  Instruction* ArgMax();
  Instruction* TopK();

  // --- random_linalg.cc --------------------------------------------------------------------------------------------
  Instruction* PositiveDefinite();  // a batch of matrices; null when no value suits
  Instruction* Cholesky();
  Instruction* TriangularSolve();
  Instruction* Fft();

  // --- random_control.cc -------------------------------------------------------------------------------------------
  Instruction* Predicate(Instruction* x);
  Instruction* Loop();
  Instruction* Accumulation();
  Instruction* Conditional();
  Instruction* Call();
  Instruction* Barrier();
  Instruction* ManualRegion();

  std::mt19937_64 random_;
  RandomOptions options_;
  MeshRef mesh_;
  std::unique_ptr<hlo::Module> module_;
  hlo::Builder* builder_ = nullptr;
  std::vector<Instruction*> pool_;
};

}  // namespace gangway::equivalence
