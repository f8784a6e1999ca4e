// The rule of every operation, as text.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "gangway/hlo/text.h"
#include "gangway/rules/rule.h"

namespace gangway::rules {
namespace {

// The rule of the last instruction of the entry.
std::string RuleOf(absl::string_view lines) {
  auto module = hlo::ParseModule(absl::StrCat(R"(HloModule m

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
second { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
greater { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
pair {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  ROOT r = (f32[], f32[]) tuple(a, d)
}
body { ROOT s = (f32[4]) parameter(0) }
cond { s = (f32[4]) parameter(0) ROOT c = pred[] constant(false) }

ENTRY e {
)",
                                              lines, "\n}\n"));
  if (!module.ok()) return std::string(module.status().message());
  auto rule = RuleFor(*(*module)->entry()->root());
  return rule.ok() ? rule->ToString() : std::string(rule.status().message());
}

TEST(Rules, Elementwise) {
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) y = f32[4,8] parameter(1) ROOT r = f32[4,8] add(x, y)"),
            "(i j),(i j)->(i j)");
  EXPECT_EQ(RuleOf("x = f32[4,1] parameter(0) ROOT r = f32[4,1] tanh(x)"), "(i j)->(i j)");
  EXPECT_EQ(RuleOf("p = pred[] parameter(0) x = f32[4] parameter(1) y = f32[4] parameter(2) "
                   "ROOT r = f32[4] select(p, x, y)"),
            "(),(i),(i)->(i)");
  EXPECT_EQ(RuleOf("l = f32[] parameter(0) x = f32[4] parameter(1) h = f32[4] parameter(2) "
                   "ROOT r = f32[4] clamp(l, x, h)"),
            "(),(i),(i)->(i)");
  EXPECT_EQ(RuleOf("x = f32[4] parameter(0) ROOT r = s8[4,4] bitcast-convert(x)"), "(i)->(i j) replicate{j}");
  EXPECT_EQ(RuleOf("ROOT c = f32[2,2] constant({ {1, 2}, {3, 4} })"), "->(i j)");
}

TEST(Rules, Dot) {
  EXPECT_EQ(RuleOf("x = f32[2,4,8] parameter(0) y = f32[2,8,16] parameter(1) ROOT r = f32[2,4,16] dot(x, y), "
                   "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"),
            "(i j l),(i l k)->(i j k) reduce{l}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) y = f32[16,8] parameter(1) ROOT r = f32[4,16] dot(x, y), "
                   "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
            "(i k),(j k)->(i j) reduce{k}");
}

TEST(Rules, Convolution) {
  EXPECT_EQ(RuleOf("x = f32[8,32,32,4] parameter(0) w = f32[3,3,4,16] parameter(1) ROOT r = f32[8,32,32,16] "
                   "convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
            "(i l m k),(n o k j)->(i l m j) reduce{k} permute{l,m} replicate{n,o}");
  // The gradient of a kernel.
  EXPECT_EQ(RuleOf("x = f32[4,32,8] parameter(0) g = f32[32,8,16] parameter(1) ROOT r = f32[4,3,16] "
                   "convolution(x, g), window={size=32 pad=1_1}, dim_labels=b0f_0io->b0f"),
            "(i l k),(l k j)->(i m j) reduce{k} permute{l} replicate{m}");
  // Pointwise, and over the whole image.
  EXPECT_EQ(RuleOf("x = f32[8,32,4] parameter(0) w = f32[1,4,16] parameter(1) ROOT r = f32[8,32,16] "
                   "convolution(x, w), window={size=1}, dim_labels=b0f_0io->b0f"),
            "(i l k),(1 k j)->(i l j) reduce{k}");
  EXPECT_EQ(RuleOf("x = f32[8,32,4] parameter(0) w = f32[32,4,16] parameter(1) ROOT r = f32[8,1,16] "
                   "convolution(x, w), window={size=32}, dim_labels=b0f_0io->b0f"),
            "(i l k),(l k j)->(i 1 j) reduce{k,l}");
  EXPECT_EQ(RuleOf("x = f32[8,32,12] parameter(0) w = f32[1,4,6] parameter(1) ROOT r = f32[8,32,6] "
                   "convolution(x, w), window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=3"),
            "(j m i*l),(1 l i*k)->(j m i*k) reduce{l}");
}

TEST(Rules, Windows) {
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) z = f32[] constant(0) ROOT r = f32[4,4] reduce-window(x, z), "
                   "window={size=1x2 stride=1x2}, to_apply=add"),
            "(i j),()->(i j) permute{j}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) s = f32[4,4] parameter(1) z = f32[] constant(0) ROOT r = f32[4,8] "
                   "select-and-scatter(x, s, z), window={size=1x2 stride=1x2}, select=greater, scatter=add"),
            "(i j),(i j),()->(i j) permute{j}");
}

TEST(Rules, Reshape) {
  EXPECT_EQ(RuleOf("x = f32[4,8,3] parameter(0) ROOT r = f32[32,3] reshape(x)"), "(i j k)->(i*j k)");
  EXPECT_EQ(RuleOf("x = f32[32,3] parameter(0) ROOT r = f32[4,8,1,3] reshape(x)"), "(i*j k)->(i j 1 k)");
  EXPECT_EQ(RuleOf("x = f32[6,4] parameter(0) ROOT r = f32[8,3] reshape(x)"), "(i*j l)->(i*k m) replicate{j,k,l,m}");
  EXPECT_EQ(RuleOf("x = f32[3,5] parameter(0) ROOT r = f32[5,3] reshape(x)"), "(i k)->(j l) replicate{i,j,k,l}");
  EXPECT_EQ(RuleOf("x = f32[1] parameter(0) ROOT r = f32[] reshape(x)"), "(1)->()");
  EXPECT_EQ(RuleOf("x = f32[0,4] parameter(0) ROOT r = f32[2,0] reshape(x)"), "(i j)->(k l) replicate{i,j,k,l}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) ROOT r = f32[8,4] transpose(x), dimensions={1,0}"), "(j i)->(i j)");
  EXPECT_EQ(RuleOf("x = f32[8] parameter(0) ROOT r = f32[4,8,2] broadcast(x), dimensions={1}"), "(j)->(i j k)");
}

TEST(Rules, Reduce) {
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) z = f32[] constant(0) ROOT r = f32[4] reduce(x, z), dimensions={1}, "
                   "to_apply=add"),
            "(i j),()->(i) reduce{j}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) z = f32[] constant(0) ROOT r = f32[8] reduce(x, z), dimensions={0}, "
                   "to_apply=max"),
            "(i j),()->(j) reduce{i:max}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) z = f32[] constant(0) ROOT r = f32[4] reduce(x, z), dimensions={1}, "
                   "to_apply=second"),
            "(i j),()->(i) replicate{j}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) y = f32[4,8] parameter(1) z = f32[] constant(0) ROOT r = (f32[4], "
                   "f32[4]) reduce(x, y, z, z), dimensions={1}, to_apply=pair"),
            "(i j),(i j),(),()->(i),(i) replicate{j}");
}

TEST(Rules, Slices) {
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) ROOT r = f32[4,3] slice(x), slice={[0:4], [2:5]}"),
            "(i j)->(i j) permute{j}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) z = f32[] constant(0) ROOT r = f32[4,9] pad(x, z), padding=0_0x1_0"),
            "(i j),()->(i j) permute{j}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) y = f32[4,2] parameter(1) ROOT r = f32[4,10] concatenate(x, y), "
                   "dimensions={1}"),
            "(i j),(i j)->(i j) permute{j}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) ROOT r = f32[4,8] reverse(x), dimensions={0}"),
            "(i j)->(i j) permute{i}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) i = s32[] parameter(1) ROOT r = f32[1,8] dynamic-slice(x, i, i), "
                   "dynamic_slice_sizes={1,8}"),
            "(j i),(),()->(1 i) replicate{j}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) u = f32[1,8] parameter(1) i = s32[] parameter(2) ROOT r = f32[4,8] "
                   "dynamic-update-slice(x, u, i, i)"),
            "(i j),(1 j),(),()->(i j) permute{i}");
}

TEST(Rules, GatherAndScatter) {
  EXPECT_EQ(RuleOf("t = f32[100,16] parameter(0) i = s32[4,8] parameter(1) ROOT r = f32[4,8,16] gather(t, i), "
                   "offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, "
                   "slice_sizes={1,16}"),
            "(l k),(i j)->(i j k) replicate{l}");
  EXPECT_EQ(RuleOf("t = f32[4,100] parameter(0) i = s32[4,1] parameter(1) ROOT r = f32[4] gather(t, i), "
                   "offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
                   "start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}"),
            "(i j),(i 1)->(i) replicate{j}");
  EXPECT_EQ(RuleOf("t = f32[100,16] parameter(0) i = s32[4] parameter(1) u = f32[4,16] parameter(2) ROOT r = "
                   "f32[100,16] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0}, "
                   "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"),
            "(k j),(i),(i j)->(k j) reduce{i} permute{k}");
  EXPECT_EQ(RuleOf("t = f32[100,16] parameter(0) i = s32[4] parameter(1) u = f32[4,16] parameter(2) ROOT r = "
                   "f32[100,16] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0}, "
                   "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second"),
            "(k j),(i),(i j)->(k j) permute{k} replicate{i}");
}

TEST(Rules, SortGenerateLinalg) {
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) ROOT r = f32[4,8] sort(x), dimensions={1}, to_apply=less"),
            "(i j)->(i j) replicate{j}");
  EXPECT_EQ(RuleOf("ROOT r = s32[4,8] iota(), iota_dimension=1"), "->(i j) permute{j}");
  EXPECT_EQ(RuleOf("s = u64[2] parameter(0) ROOT r = (u64[2], u32[4,8]) rng-bit-generator(s), "
                   "algorithm=rng_three_fry"),
            "(k)->(l),(i j) permute{i,j} replicate{k,l}");
  EXPECT_EQ(RuleOf("x = f32[2,4,4] parameter(0) ROOT r = f32[2,4,4] cholesky(x), lower=true"),
            "(i j k)->(i j k) replicate{j,k}");
  EXPECT_EQ(RuleOf("a = f32[2,4,4] parameter(0) b = f32[2,4,8] parameter(1) ROOT r = f32[2,4,8] "
                   "triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE"),
            "(i k l),(i m j)->(i n j) replicate{k,l,m,n}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) ROOT r = c64[4,5] fft(x), fft_type=RFFT, fft_length={8}"),
            "(i j)->(i k) replicate{j,k}");
}

TEST(Rules, OtherForms) {
  EXPECT_EQ(RuleOf("ROOT x = f32[4] parameter(0)"), "control");
  EXPECT_EQ(RuleOf("x = (f32[4]) parameter(0) ROOT w = (f32[4]) while(x), condition=cond, body=body"), "control");
  EXPECT_EQ(RuleOf("x = f32[4] parameter(0) ROOT c = f32[4] custom-call(x), custom_call_target=\"Sharding\""),
            "control");
  EXPECT_EQ(RuleOf("x = f32[4] parameter(0) ROOT c = f32[4] custom-call(x), custom_call_target=\"mystery\""),
            "unsupported: custom call mystery has no sharding rule");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) ROOT c = f32[4] custom-call(x), custom_call_target=\"mine\", "
                   "frontend_attributes={xla.sdy.sharding_rule=\"#sdy.op_sharding_rule<([i, j])->([i]) {i=4, j=8} "
                   "reduction={j}, custom>\"}"),
            "(i j)->(i) reduce{j}");
  // As jax writes it for a batch of matrices.
  EXPECT_EQ(
      RuleOf("x = f32[4,8] parameter(0) ROOT c = f32[4,8] custom-call(x), custom_call_target=\"mine\", "
             "frontend_attributes={xla.sdy.sharding_rule=\"#sdy.op_sharding_rule<([i, j])->([i, k]) {i=4, j=8, k=8}, "
             "custom>\"}"),
      "(i j)->(i k) replicate{j,k}");
  EXPECT_EQ(RuleOf("x = f32[4,8] parameter(0) ROOT c = f32[4,8] all-reduce(x), replica_groups={}, to_apply=add"),
            "(i j)->(i j)");
}

}  // namespace
}  // namespace gangway::rules
