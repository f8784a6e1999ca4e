#include "gangway/hlo/infer.h"

#include "gangway/hlo/builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gangway::hlo {
namespace {

using ::testing::HasSubstr;

TEST(InferTest, EveryOpcodeHasARow) {
  for (const OpcodeInfo& info : AllOpcodes()) EXPECT_TRUE(HasInference(info.opcode)) << info.name;
}

class InferShapeTest : public ::testing::Test {
 protected:
  InferShapeTest() : module_("m"), builder_(module_.AddComputation("main")) {}

  // Result of an operation on operands of the given shape texts, or the error's message.
  std::string Infer(Opcode opcode, const std::vector<std::string>& operands, Attributes attributes = {},
                    std::vector<Computation*> called = {}, const std::string& wanted = "") {
    std::vector<Shape> shapes;
    for (const std::string& text : operands) shapes.push_back(ParseShape(text).value());
    std::vector<const Shape*> pointers;
    for (const Shape& shape : shapes) pointers.push_back(&shape);
    std::vector<const Computation*> computations(called.begin(), called.end());
    absl::StatusOr<Shape> result =
        InferShape(opcode, pointers, attributes, computations, wanted.empty() ? Shape() : ParseShape(wanted).value());
    return result.ok() ? result->ToString(/*with_layout=*/true) : std::string(result.status().message());
  }

  Module module_;
  Builder builder_;
};

TEST_F(InferShapeTest, Elementwise) {
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[2,3]{1,0}", "f32[2,3]{0,1}"}), "f32[2,3]");
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[2,3]", "f32[3,2]"}), "add(f32[2,3], f32[3,2]): operand types differ");
  EXPECT_EQ(Infer(Opcode::kAdd, {"f32[2]"}), "add(f32[2]): takes 2 operands, not 1");
  EXPECT_EQ(Infer(Opcode::kFloor, {"s32[2]"}), "floor(s32[2]): not defined for s32");
  EXPECT_EQ(Infer(Opcode::kAbs, {"c64[2]"}), "f32[2]");
  EXPECT_EQ(Infer(Opcode::kCompare, {"s8[2]", "s8[2]"}, CompareAttr{ComparisonDirection::kLt}), "pred[2]");
  EXPECT_EQ(Infer(Opcode::kCompare, {"s8[2]", "s8[2]"}), "compare(s8[2], s8[2]): attributes of another family");
  EXPECT_EQ(Infer(Opcode::kSelect, {"pred[]", "f32[2]", "f32[2]"}), "f32[2]");
  EXPECT_EQ(Infer(Opcode::kConvert, {"f32[2]"}, {}, {}, "bf16[2]"), "bf16[2]");
  EXPECT_EQ(Infer(Opcode::kComplex, {"f64[2]", "f64[2]"}), "c128[2]");
}

TEST_F(InferShapeTest, Movement) {
  EXPECT_EQ(Infer(Opcode::kBroadcast, {"f32[3]"}, DimensionsAttr{{1}}, {}, "f32[2,3]{1,0}"), "f32[2,3]{1,0}");
  EXPECT_THAT(Infer(Opcode::kBroadcast, {"f32[3]"}, DimensionsAttr{{0}}, {}, "f32[2,3]"),
              HasSubstr("operand dimension 0 (3) differs from dimension 0"));
  EXPECT_EQ(Infer(Opcode::kTranspose, {"f32[2,3,5]"}, DimensionsAttr{{2, 0, 1}}), "f32[5,2,3]");
  EXPECT_THAT(Infer(Opcode::kTranspose, {"f32[2,3]"}, DimensionsAttr{{1, 1}}), HasSubstr("listed twice"));
  EXPECT_THAT(Infer(Opcode::kReshape, {"f32[2,3]"}, {}, {}, "f32[7]"), HasSubstr("6 elements do not fill f32[7]"));
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {"f32[2]"}, {}, {}, "u8[2,4]"), "u8[2,4]");
  EXPECT_EQ(Infer(Opcode::kBitcastConvert, {"u8[2,4]"}, {}, {}, "f32[2]"), "f32[2]");
}

TEST_F(InferShapeTest, Slices) {
  EXPECT_EQ(Infer(Opcode::kSlice, {"f32[10]"}, SliceAttr{{1}, {9}, {3}}), "f32[3]");
  EXPECT_THAT(Infer(Opcode::kSlice, {"f32[10]"}, SliceAttr{{1}, {11}, {3}}), HasSubstr("[1:11:3] does not fit 10"));
  EXPECT_EQ(Infer(Opcode::kPad, {"f32[3]", "f32[]"}, PadAttr{{PadDim{1, -1, 2}}}), "f32[7]");
  EXPECT_THAT(Infer(Opcode::kPad, {"f32[3]", "f32[]"}, PadAttr{{PadDim{0, -4, 0}}}), HasSubstr("negative padding"));
  EXPECT_EQ(Infer(Opcode::kConcatenate, {"f32[2,3]", "f32[4,3]"}, DimensionsAttr{{0}}), "f32[6,3]");
  EXPECT_EQ(Infer(Opcode::kDynamicSlice, {"f32[8,8]", "s32[]", "s32[]"}, DynamicSliceAttr{{2, 8}}), "f32[2,8]");
  EXPECT_THAT(Infer(Opcode::kDynamicUpdateSlice, {"f32[8]", "f32[9]", "s32[]"}), HasSubstr("larger than"));
}

TEST_F(InferShapeTest, Dot) {
  DotAttr attr{.lhs_batch = {0}, .rhs_batch = {2}, .lhs_contracting = {2}, .rhs_contracting = {0}};
  EXPECT_EQ(Infer(Opcode::kDot, {"bf16[4,2,3]", "bf16[3,5,4]"}, attr), "bf16[4,2,5]");
  EXPECT_EQ(Infer(Opcode::kDot, {"bf16[4,2,3]", "bf16[3,5,4]"}, attr, {}, "f32[4,2,5]"), "f32[4,2,5]");
  EXPECT_THAT(Infer(Opcode::kDot, {"f32[4,2,3]", "f32[2,5,4]"}, attr),
              HasSubstr("contracting dimensions: lhs 2 has 3 elements, rhs 0 has 2"));
}

TEST_F(InferShapeTest, Windows) {
  ConvolutionAttr conv;
  conv.window = {WindowDim{.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1}};
  conv.input_batch = 0, conv.input_feature = 2, conv.input_spatial = {1};
  conv.kernel_input_feature = 1, conv.kernel_output_feature = 2, conv.kernel_spatial = {0};
  conv.output_batch = 0, conv.output_feature = 2, conv.output_spatial = {1};
  EXPECT_EQ(Infer(Opcode::kConvolution, {"f32[8,10,4]", "f32[3,4,16]"}, conv), "f32[8,5,16]");
  EXPECT_THAT(Infer(Opcode::kConvolution, {"f32[8,10,4]", "f32[3,5,16]"}, conv), HasSubstr("the kernel takes 5"));
  Computation* add = builder_.ScalarComputation(Opcode::kAdd, DType::kF32);
  WindowAttr window{{WindowDim{}, WindowDim{.size = 2, .stride = 2, .base_dilation = 3}}};
  EXPECT_EQ(Infer(Opcode::kReduceWindow, {"f32[8,10]", "f32[]"}, window, {add}), "f32[8,14]");
}

TEST_F(InferShapeTest, ReduceSortTopK) {
  Computation* add = builder_.ScalarComputation(Opcode::kAdd, DType::kF32);
  EXPECT_EQ(builder_.ScalarComputation(Opcode::kAdd, DType::kF32), add);
  EXPECT_EQ(Infer(Opcode::kReduce, {"f32[8,10]", "f32[]"}, DimensionsAttr{{0}}, {add}), "f32[10]");
  EXPECT_THAT(Infer(Opcode::kReduce, {"f32[8,10]", "f32[]"}, DimensionsAttr{{2}}, {add}), HasSubstr("not in [0, 2)"));
  EXPECT_THAT(Infer(Opcode::kSort, {"f32[8]"}, SortAttr{}, {add}), HasSubstr("must give pred[]"));
  EXPECT_EQ(Infer(Opcode::kTopK, {"f32[8,10]"}, TopKAttr{3}), "(f32[8,3], s32[8,3])");
}

TEST_F(InferShapeTest, GatherScatter) {
  GatherAttr gather;
  gather.offset_dims = {1}, gather.collapsed_slice_dims = {0}, gather.start_index_map = {0};
  gather.index_vector_dim = 1, gather.slice_sizes = {1, 16};
  EXPECT_EQ(Infer(Opcode::kGather, {"f32[100,16]", "s32[7,1]"}, gather), "f32[7,16]");
  gather.slice_sizes = {2, 16};
  EXPECT_THAT(Infer(Opcode::kGather, {"f32[100,16]", "s32[7,1]"}, gather), HasSubstr("collapsed dimension 0"));
  ScatterAttr scatter;
  scatter.update_window_dims = {1}, scatter.inserted_window_dims = {0}, scatter.scatter_dims_to_operand_dims = {0};
  scatter.index_vector_dim = 1;
  Computation* add = builder_.ScalarComputation(Opcode::kAdd, DType::kF32);
  EXPECT_EQ(Infer(Opcode::kScatter, {"f32[100,16]", "s32[7,1]", "f32[7,16]"}, scatter, {add}), "f32[100,16]");
  EXPECT_THAT(Infer(Opcode::kScatter, {"f32[100,16]", "s32[7,1]", "f32[6,16]"}, scatter, {add}),
              HasSubstr("update 0: update dimension 0 (6)"));
}

TEST_F(InferShapeTest, Collectives) {
  CollectiveAttr attr;
  attr.dimension = 1;
  attr.groups.groups = {{0, 1}, {2, 3}};
  EXPECT_EQ(Infer(Opcode::kAllGather, {"f32[4,6]"}, attr), "f32[4,12]");
  Computation* add = builder_.ScalarComputation(Opcode::kAdd, DType::kF32);
  EXPECT_EQ(Infer(Opcode::kReduceScatter, {"f32[4,6]"}, attr, {add}), "f32[4,3]");
  EXPECT_THAT(Infer(Opcode::kReduceScatter, {"f32[4,5]"}, attr, {add}), HasSubstr("no multiple of 2"));
  attr.groups.groups.clear();
  EXPECT_EQ(Infer(Opcode::kAllGather, {"f32[4,6]"}, attr, {}, "f32[4,48]"), "f32[4,48]");
  EXPECT_EQ(Infer(Opcode::kAllReduce, {"f32[4]", "s32[]"}, CollectiveAttr{}, {add}), "(f32[4], s32[])");
}

TEST_F(InferShapeTest, Linalg) {
  EXPECT_EQ(Infer(Opcode::kFft, {"f32[8]"}, FftAttr{FftType::kRfft, {8}}), "c64[5]");
  EXPECT_EQ(Infer(Opcode::kFft, {"c64[5]"}, FftAttr{FftType::kIrfft, {8}}), "f32[8]");
  EXPECT_EQ(Infer(Opcode::kFft, {"c64[3,1]"}, FftAttr{FftType::kIrfft, {0}}), "f32[3,0]");
  EXPECT_EQ(Infer(Opcode::kFft, {"c64[3,0]"}, FftAttr{FftType::kIrfft, {0}}), "f32[3,0]");
  EXPECT_THAT(Infer(Opcode::kCholesky, {"f32[2,3]"}, CholeskyAttr{}), HasSubstr("square"));
  EXPECT_EQ(Infer(Opcode::kTriangularSolve, {"f32[3,3]", "f32[3,2]"}, TriangularSolveAttr{.left_side = true}),
            "f32[3,2]");
}

TEST_F(InferShapeTest, Builder) {
  Instruction* x = builder_.Parameter(0, Shape(DType::kF32, {4, 4}), "x");
  Instruction* y = builder_.Dot(x, x, DotAttr{.lhs_contracting = {1}, .rhs_contracting = {0}}, DType::kF64);
  EXPECT_EQ(y->shape().ToString(), "f64[4,4]");
  EXPECT_EQ(builder_.Splat(Shape(DType::kS32, {3}), 7)->shape().ToString(), "s32[3]");
  absl::StatusOr<Instruction*> wrong = builder_.TryAdd(Opcode::kNegate, {x}, {}, {}, Shape(DType::kF32, {5}));
  EXPECT_EQ(wrong.status().message(), "negate: gives f32[4,4], declared as f32[5]");
}

}  // namespace
}  // namespace gangway::hlo
