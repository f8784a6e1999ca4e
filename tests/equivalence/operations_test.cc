// Single operations along split dimensions, whole against partitioned: every instruction of a small program gets random
// shardings over several meshes, even and uneven.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gangway/base/status.h"
#include "gangway/hlo/infer.h"
#include "gangway/hlo/text.h"
#include "gtest/gtest.h"
#include "tests/equivalence/equivalence.h"

namespace gangway::equivalence {
namespace {

using hlo::Opcode;

std::vector<MeshRef> Meshes() {
  const auto make = [](std::vector<MeshAxis> axes, std::vector<int64_t> ids = {}) {
    return std::make_shared<const Mesh>(*Mesh::Make(std::move(axes), std::move(ids)));
  };
  return {make({{"x", 2}}),
          make({{"x", 4}}),
          make({{"x", 3}}),
          make({{"x", 8}}),
          make({{"x", 2}, {"y", 2}}, {1, 3, 0, 2}),
          make({{"x", 2}, {"y", 3}})};
}

Sharding RandomSharding(const MeshRef& mesh, const Shape& shape, bool even, std::mt19937_64& random) {
  Sharding sharding = Sharding::Replicated(mesh, shape.rank()).Closed();
  if (shape.rank() == 0) return sharding;
  for (int axis = 0; axis < mesh->rank(); ++axis) {
    if (random() % 5 == 0) continue;
    const int64_t d = static_cast<int64_t>(random() % static_cast<uint64_t>(shape.rank()));
    const int64_t count = sharding.ShardCount(d) * mesh->axis_size(axis);
    if (count > shape.dim(d) || (even && shape.dim(d) % count != 0)) continue;
    sharding.dims[d].axes.push_back(FullAxis(*mesh, axis));
  }
  return sharding;
}

void ShardAtRandom(hlo::Module* module, const MeshRef& mesh, std::mt19937_64& random) {
  module->config().num_partitions = mesh->size();
  module->meshes() = {{"mesh", mesh}};
  for (const auto& instruction : module->entry()->instructions()) {
    const bool border = instruction->opcode() == Opcode::kParameter || instruction->IsRoot();
    Shardings shardings;
    for (const Shape& leaf : Leaves(instruction->shape())) {
      shardings.push_back(RandomSharding(mesh, leaf, border, random));
    }
    instruction->set_shardings(std::move(shardings));
  }
}

// Result types that the text leaves out, "x = negate(p0)", are inferred.
class UntypedText {
 public:
  explicit UntypedText(const std::string& body) {
    for (absl::string_view line : absl::StrSplit(body, '\n')) {
      const size_t at = line.find(" = ");
      const size_t open = line.find('(');
      if (at != line.npos && at + 3 < open && line.substr(at + 3, open - at - 3).find('[') == line.npos) {
        absl::string_view name = absl::StripAsciiWhitespace(line.substr(0, at));
        absl::ConsumePrefix(&name, "ROOT ");
        untyped_.insert(std::string(name));
        absl::StrAppend(&text_, line.substr(0, at + 3), "f32[] ", line.substr(at + 3), "\n");
      } else {
        absl::StrAppend(&text_, line, "\n");
      }
    }
  }

  const std::string& text() const { return text_; }

  absl::Status Infer(hlo::Computation* computation) const {
    for (const auto& instruction : computation->instructions()) {
      const std::string name = instruction->name().substr(0, instruction->name().find('.'));  // made unique by a number
      if (!untyped_.contains(name)) continue;
      std::vector<const Shape*> operands;
      for (const hlo::Instruction* operand : instruction->operands()) operands.push_back(&operand->shape());
      std::vector<const hlo::Computation*> called(instruction->called().begin(), instruction->called().end());
      GW_ASSIGN_OR_RETURN(Shape shape,
                          hlo::InferShape(instruction->opcode(), operands, instruction->attributes(), called, Shape()));
      instruction->set_shape(std::move(shape));
    }
    return absl::OkStatus();
  }

 private:
  std::string text_;
  std::set<std::string> untyped_;
};

// `body` is the entry computation's; combiners are at hand.
void Check(const std::string& body, int tries = 30) {
  const UntypedText untyped(body);
  const std::string text = absl::StrCat(R"(HloModule operation
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
log_add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  m = f32[] maximum(a, b)
  l = f32[] minimum(a, b)
  d = f32[] subtract(l, m)
  e = f32[] exponential(d)
  p = f32[] log-plus-one(e)
  s = f32[] add(m, p)
  n = f32[] constant(-inf)
  q = pred[] compare(l, n), direction=EQ
  ROOT c = f32[] select(q, m, s)
}
ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE
}
lt {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
gt_s32 {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GT
}
lt_pair {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT e = pred[] compare(a, b), direction=LT
}
ENTRY main {
)",
                                        untyped.text(), "}\n");
  auto parsed = hlo::ParseModule(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  const absl::Status inferred = untyped.Infer((*parsed)->entry());
  ASSERT_TRUE(inferred.ok()) << inferred << "\n" << text;
  // GANGWAY_FIRST_SEED=s tries other shardings.
  const char* first = std::getenv("GANGWAY_FIRST_SEED");
  uint64_t seed = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  for (const MeshRef& mesh : Meshes()) {
    for (int i = 0; i < tries; ++i, ++seed) {
      std::mt19937_64 random(seed);
      const std::unique_ptr<hlo::Module> module = (*parsed)->Clone();
      ShardAtRandom(module.get(), mesh, random);
      CheckOptions options;
      options.seed = seed;
      options.propagate = false;
      const absl::Status status = CheckEquivalent(*module, options);
      ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.message();
    }
  }
}

// Parameters p0, p1 ... of the given types, then the rest.
std::string With(const std::vector<std::string>& types, const std::string& rest) {
  std::string body;
  for (size_t i = 0; i < types.size(); ++i) {
    absl::StrAppend(&body, "  p", i, " = ", types[i], " parameter(", i, ")\n");
  }
  return body + rest;
}

TEST(Operations, ConvolutionsOfEveryKindOfWindow) {
  const std::string labels = "dim_labels=b0f_0io->b0f";
  for (const std::string window :
       {"size=3 pad=1_1", "size=3 stride=2 pad=0_1", "size=2 lhs_dilate=2 pad=1_1", "size=3 lhs_dilate=2 pad=2_1",
        "size=3 lhs_dilate=3 pad=2_2", "size=3 stride=2 lhs_dilate=3 pad=1_2", "size=3 rhs_dilate=3", "size=5 stride=2",
        "size=4 pad=3_0", "size=1 stride=2", "size=3 pad=-1_-2", "size=3 pad=4_4", "size=3 rhs_reversal=1 pad=1_1"}) {
    for (const std::string extent : {"16", "24", "15"}) {
      SCOPED_TRACE(window + " over " + extent);
      const std::string size = window.substr(5, 1);
      Check(With({"f32[8," + extent + ",32]", "f32[" + size + ",32,4]"},
                 "  ROOT r = convolution(p0, p1), window={" + window + "}, " + labels),
            6);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Operations, KernelGradients) {
  // As jax makes them: the batch is contracted as a feature, the gradient is the kernel.
  for (const std::string window :
       {"size=16 pad=1_1", "size=8 rhs_dilate=2", "size=8 pad=0_1 rhs_dilate=2", "size=16 pad=3_0", "size=15 pad=1_0",
        "size=16 lhs_dilate=2 pad=0_0", "size=30 lhs_dilate=2 pad=1_1", "size=16 stride=2 pad=2_2",
        "size=11 lhs_dilate=3 pad=0_0 rhs_dilate=4"}) {
    SCOPED_TRACE(window);
    const std::string size = window.substr(5, window.find(' ', 5) - 5);
    Check(With({"f32[32,16,16]", "f32[" + size + ",16,3]"},
               "  ROOT r = convolution(p0, p1), window={" + window + "}, dim_labels=b0f_0io->b0f"),
          8);
    if (HasFatalFailure()) return;
  }
}

TEST(Operations, KernelGradientsOfWhatIsNotFinite) {
  // Elements of the image that some results do not read are infinite: where kernels are padded they must not be either.
  for (const std::string window : {"size=9 pad=-1_-2", "size=13", "size=9 pad=0_-4", "size=5 rhs_dilate=2 pad=-1_-1",
                                   "size=3 rhs_dilate=3 pad=-2_-2", "size=17 lhs_dilate=2 pad=-1_-7"}) {
    SCOPED_TRACE(window);
    const std::string size = window.substr(5, window.find(' ', 5) - 5);
    Check(With({"f32[8,15,4]", "f32[" + size + ",4,3]"},
               "  i = f32[8,15,4] iota(), iota_dimension=1\n"
               "  n = f32[] constant(12)\n"
               "  m = f32[8,15,4] broadcast(n), dimensions={}\n"
               "  c = pred[8,15,4] compare(i, m), direction=GE\n"
               "  f = f32[] constant(inf)\n"
               "  g = f32[8,15,4] broadcast(f), dimensions={}\n"
               "  s = f32[8,15,4] select(c, g, p0)\n"
               "  k = f32[" +
                   size +
                   ",4,3] abs(p1)\n"
                   "  ROOT r = convolution(s, k), window={" +
                   window + "}, dim_labels=b0f_0io->b0f"),
          20);
    if (HasFatalFailure()) return;
  }
}

TEST(Operations, JoinsOfManyEqualPieces) {
  std::vector<std::string> types;
  std::string names;
  for (int i = 0; i < 24; ++i) {
    types.push_back("f32[3,24,2]");
    absl::StrAppend(&names, i == 0 ? "p" : ", p", i);
  }
  Check(With(types, "  ROOT r = concatenate(" + names + "), dimensions={1}"), 10);
}

TEST(Operations, GroupedConvolutions) {
  Check(With({"f32[16,16,32]", "f32[3,1,32]"},
             "  ROOT r = convolution(p0, p1), window={size=3 pad=1_1}, "
             "dim_labels=b0f_0io->b0f, feature_group_count=32"));
  Check(With({"f32[32,16,16]", "f32[16,16,8]"},
             "  ROOT r = convolution(p0, p1), window={size=16 pad=1_1}, "
             "dim_labels=b0f_0io->b0f, batch_group_count=4"));
  Check(With({"f32[16,16,32]", "f32[3,8,4]"},
             "  ROOT r = convolution(p0, p1), window={size=3 stride=2 pad=0_1}, "
             "dim_labels=b0f_0io->b0f, feature_group_count=4"));
}

TEST(Operations, TwoSpatialDimensions) {
  Check(With({"f32[4,8,12,16]", "f32[3,3,16,2]"},
             "  ROOT r = convolution(p0, p1), window={size=3x3 stride=2x1 "
             "pad=0_1x1_1}, dim_labels=b01f_01io->b01f"),
        12);
  Check(With({"f32[8,8,12,8]", "f32[8,8,12,4]"},
             "  ROOT r = convolution(p0, p1), window={size=8x12 pad=1_1x1_1}, "
             "dim_labels=f01b_i01o->01bf"),
        12);
  Check(With({"f32[4,8,12,16]", "f32[2,2,16,2]"},
             "  ROOT r = convolution(p0, p1), window={size=2x2 lhs_dilate=2x2 "
             "pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
        12);
}

TEST(Operations, PoolingGradients) {
  for (const std::string window : {"size=2x1 stride=2x1", "size=3x1 stride=2x1 pad=1_1x0_0", "size=3x1 pad=1_1x0_0",
                                   "size=2x1 stride=3x1 pad=1_0x0_0", "size=2x2 stride=2x2"}) {
    for (const std::string extent : {"16", "15"}) {
      SCOPED_TRACE(window + " over " + extent);
      const std::string init = "  z = f32[] constant(0)\n  m = f32[] constant(-inf)\n";
      // Distinct values: of equal ones the first wins, and which is the first must not depend on the shards.
      Check(With({"f32[" + extent + ",256]"},
                 init + "  i = f32[" + extent + ",256] iota(), iota_dimension=0\n  j = f32[" + extent +
                     ",256] iota(), iota_dimension=1\n  t = f32[" + extent + ",256] sine(i)\n  u = f32[" + extent +
                     ",256] cosine(j)\n  v = f32[" + extent + ",256] multiply(t, u)\n  x = f32[" + extent +
                     ",256] add(v, p0)\n  s = reduce-window(x, m), window={" + window +
                     "}, to_apply=max\n  ROOT r = select-and-scatter(x, s, z), window={" + window +
                     "}, select=ge, scatter=add"),
            6);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Operations, CumulativeReductions) {
  for (const std::string extent : {"16", "15", "24", "7"}) {
    const int64_t n = std::stoll(extent), last = n - 1;
    for (const std::string& pad : {absl::StrCat(last, "_0x0_0"), absl::StrCat("0_", last, "x0_0")}) {
      SCOPED_TRACE(extent + " padded by " + pad);
      const std::string rest = absl::StrCat(", window={size=", n, "x1 pad=", pad, "}, to_apply=");
      Check(
          With({"f32[" + extent + ",256]"}, "  z = f32[] constant(0)\n  ROOT r = reduce-window(p0, z)" + rest + "add"),
          5);
      Check(With({"f32[" + extent + ",256]"},
                 "  z = f32[] constant(-inf)\n  ROOT r = reduce-window(p0, z)" + rest + "log_add"),
            5);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Operations, Movement) {
  for (const std::string e : {"16", "24", "13"}) {
    const int64_t n = std::stoll(e);
    const std::string x = "f32[" + e + ",512]";
    const auto slice = [&](const std::string& name, const std::string& of, int64_t from, int64_t to,
                           int64_t width = 512) {
      return absl::StrCat("  ", name, " = slice(", of, "), slice={[", from, ":", to, "], [0:", width, "]}\n");
    };
    SCOPED_TRACE(e);
    const std::vector<std::string> programs = {
        // Joined with what every device has whole, and with what is computed from parts.
        "  c = f32[] constant(2)\n  w = f32[3,512] broadcast(c), dimensions={}\n"
        "  ROOT r = concatenate(w, p0, w), dimensions={0}",
        slice("a", "p0", 2, n) + slice("b", "p0", 0, n - 2) +
            "  d = multiply(a, b)\n  e = negate(d)\n  c = f32[] constant(0)\n  ROOT r = pad(e, c), padding=1_1x0_0",
        slice("a", "p0", 2, n) + slice("b", "p0", 0, n - 2) + slice("h", "p0", 0, 1) +
            "  d = multiply(a, b)\n  e = negate(d)\n  ROOT r = concatenate(h, e, h), dimensions={0}",
        slice("a", "p0", n - 1, n) + slice("b", "p0", 0, 1) + "  w = concatenate(a, p0, b), dimensions={0}\n" +
            absl::StrCat("  c = slice(w), slice={[0:", n, "], [0:512]}\n  d = slice(w), slice={[2:", n + 2,
                         "], [0:512]}\n") +
            "  ROOT r = add(c, d)",
        "  t = f32[512," + e + "] transpose(p0), dimensions={1,0}\n  ROOT r = reverse(t), dimensions={1,0}",
        absl::StrCat("  ROOT r = slice(p0), slice={[0:", n / 2, "], [0:512]}"),
        absl::StrCat("  ROOT r = slice(p0), slice={[", n - 3, ":", n - 1, "], [1:400]}"),
        absl::StrCat("  ROOT r = slice(p0), slice={[1:", n, ":3], [0:512:2]}"),
        "  ROOT r = reverse(p0), dimensions={0}",
        "  ROOT r = reverse(p0), dimensions={0,1}",
        "  z = f32[] constant(7)\n  ROOT r = pad(p0, z), padding=3_2x0_0",
        "  z = f32[] constant(0)\n  ROOT r = pad(p0, z), padding=3_2x1_1",
        "  z = f32[] constant(7)\n  ROOT r = pad(p0, z), padding=-3_5x2_-1",
        "  z = f32[] constant(7)\n  ROOT r = pad(p0, z), padding=1_0_1x0_0",
        "  z = f32[] constant(7)\n  ROOT r = pad(p0, z), padding=0_2_2x1_0_1",
        "  ROOT r = concatenate(p0, p0), dimensions={0}",
        "  q = negate(p0)\n  ROOT r = concatenate(p0, q, p0), dimensions={0}",
        slice("a", "p0", n / 2, n) + slice("b", "p0", 0, n / 2) + "  ROOT r = concatenate(a, b), dimensions={0}",
        slice("a", "p0", 5, n) + slice("b", "p0", 0, 5) + "  ROOT r = concatenate(a, b), dimensions={0}",
        slice("h", "p0", 0, 1) + slice("a", "p0", 1, n) + slice("b", "p0", 0, n - 1) +
            "  d = subtract(a, b)\n  ROOT r = concatenate(h, d), dimensions={0}",
        slice("a", "p0", 1, n) + slice("b", "p0", 0, n - 1) + "  ROOT r = subtract(a, b)",
        "  z = f32[] constant(0)\n  w = pad(p0, z), padding=1_1x1_1\n" +
            absl::StrCat("  a = slice(w), slice={[0:", n, "], [0:512]}\n  b = slice(w), slice={[2:", n + 2,
                         "], [2:514]}\n  c = slice(w), slice={[1:", n + 1, "], [1:513]}\n") +
            "  d = add(a, b)\n  ROOT r = add(d, c)",
        "  f = reverse(p0), dimensions={0}\n" + slice("a", "f", 1, n - 2) + slice("b", "p0", 3, n) +
            "  ROOT r = concatenate(a, b), dimensions={0}",
    };
    for (size_t i = 0; i < programs.size(); ++i) {
      SCOPED_TRACE(programs[i]);
      Check(With({x}, programs[i]), 8);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Operations, DynamicSlices) {
  for (const std::string size : {"1", "3", "7", "11", "16"}) {
    SCOPED_TRACE(size);
    // Starts of -4 .. 4, then beyond the end.
    for (const std::string start : {"  i = s32[] multiply(p1, p1)\n", "  i = s32[] add(p1, p1)\n"}) {
      Check(With({"f32[16,512]", "s32[]"},
                 start + "  ROOT r = dynamic-slice(p0, i, p1), dynamic_slice_sizes={" + size + ",400}"),
            10);
      Check(With({"f32[16,512]", "s32[]", "f32[" + size + ",400]"},
                 start + "  ROOT r = dynamic-update-slice(p0, p2, i, p1)"),
            10);
      Check(With({"f32[16,512]", "s32[]", "f32[" + size + ",400]"},
                 start + "  e = slice(p0), slice={[0:16], [0:500]}\n  ROOT r = dynamic-update-slice(e, p2, i, p1)"),
            10);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Operations, UpdatesAtKnownPlaces) {
  for (const std::string rows : {"14", "9", "5", "1"}) {
    for (const std::string place : {"1", "2", "40"}) {
      SCOPED_TRACE(rows + " rows from " + place);
      Check(With({"f32[16,1536]", "f32[" + rows + ",1534]"}, "  i = s32[] constant(" + place +
                                                                 ")\n  j = s32[] constant(1)\n  u = negate(p1)\n"
                                                                 "  ROOT r = dynamic-update-slice(p0, u, i, j)"),
            10);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Operations, RandomBits) {
  for (const std::string state : {"u64[2]", "u64[3]"}) {
    for (const std::string bits : {"u32[16,6]", "u64[8,5]", "u16[1,24,2]", "u32[12,3]"}) {
      for (const std::string leaf : {"0", "1"}) {
        SCOPED_TRACE(state + " " + bits + " " + leaf);
        const std::string type = leaf == "0" ? state : bits;
        Check(With({state}, "  t = (" + state + ", " + bits + ") rng-bit-generator(p0), algorithm=rng_philox\n" +
                                "  ROOT r = " + type + " get-tuple-element(t), index=" + leaf),
              10);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Operations, PartsThatAreOnlyMoved) {
  const std::string parts = "  a = slice(p0), slice={[0:7], [0:600]}\n  b = slice(p0), slice={[7:8], [0:600]}\n";
  const std::string pad = "  z = f32[] constant(0)\n";
  for (const std::string end : {"  ROOT r = concatenate(b, a), dimensions={0}", "  ROOT r = pad(a, z), padding=1_0x0_0",
                                "  ROOT r = reverse(a), dimensions={0}"}) {
    SCOPED_TRACE(end);
    Check(With({"f32[8,600]"}, parts + pad + end), 20);
    if (HasFatalFailure()) return;
  }
}

TEST(Operations, TopK) {
  // Distinct values: which of equal ones is taken is the implementation's choice.
  for (const std::string k : {"1", "3", "9", "20"}) {
    SCOPED_TRACE(k);
    const std::string both = "(f32[4," + k + "], s32[4," + k + "])";
    Check(With({"f32[4,1024]"},
               "  z = f32[] constant(0.01)\n  y = f32[4,1024] broadcast(z), dimensions={}\n"
               "  j = f32[4,1024] iota(), iota_dimension=1\n  u = multiply(j, y)\n  x = add(p0, u)\n"
               "  ROOT r = " +
                   both + " topk(x), k=" + k + ", largest=true"));
    Check(With({"f32[4,1023]"},
               "  z = f32[] constant(0.01)\n  y = f32[4,1023] broadcast(z), dimensions={}\n"
               "  j = f32[4,1023] iota(), iota_dimension=1\n  u = multiply(j, y)\n  x = add(p0, u)\n"
               "  ROOT r = " +
                   both + " topk(x), k=" + k + ", largest=true"));
  }
}

TEST(Operations, TransformsAndSorts) {
  const std::string parts = "\n  a = real(y)\n  b = imag(y)\n  ROOT r = subtract(a, b)";
  Check(With({"c64[3,16,48]"}, std::string("  y = c64[3,16,48] fft(p0), fft_type=FFT, fft_length={16,48}") + parts),
        10);
  Check(With({"c64[3,32,24]"}, std::string("  y = c64[3,32,24] fft(p0), fft_type=IFFT, fft_length={3,32,24}") + parts),
        10);
  Check(With({"f32[3,32,48]"}, std::string("  y = c64[3,32,25] fft(p0), fft_type=RFFT, fft_length={32,48}") + parts),
        10);
  Check(With({"c64[3,32,25]"}, "  ROOT r = f32[3,32,48] fft(p0), fft_type=IRFFT, fft_length={32,48}"), 10);
  Check(With({"f32[32,512]"}, "  ROOT r = f32[32,512] sort(p0), dimensions={1}, to_apply=lt"), 10);
  Check(With({"f32[32,512]"}, "  ROOT r = f32[32,512] sort(p0), dimensions={0}, to_apply=lt"), 10);
}

// The only dimension is split: nothing to move it to.
TEST(Operations, SortsAlongOneDimension) {
  Check(With({"f32[1024]"}, "  ROOT r = f32[1024] sort(p0), dimensions={0}, to_apply=lt"), 20);
  Check(With({"s32[3,96]"}, "  ROOT r = s32[3,96] sort(p0), dimensions={1}, to_apply=gt_s32"), 20);
  const std::string pairs =
      "  i = s32[1024] iota(), iota_dimension=0\n"
      "  s = (s32[1024], s32[1024]) sort(p0, i), dimensions={0}, is_stable=true, to_apply=lt_pair\n"
      "  ROOT r = s32[1024] get-tuple-element(s), index=1";
  Check(With({"s32[1024]"}, pairs), 20);
  const std::string carried =
      "  s = (s32[1024], s32[1024]) sort(p0, p1), dimensions={0}, is_stable=true, to_apply=lt_pair\n"
      "  ROOT r = s32[1024] get-tuple-element(s), index=1";
  Check(With({"s32[1024]", "s32[1024]"}, carried), 20);
}

TEST(Operations, TransformsAlongOneDimension) {
  const std::string parts = "\n  a = real(y)\n  b = imag(y)\n  ROOT r = subtract(a, b)";
  Check(With({"c64[1152]"}, std::string("  y = c64[1152] fft(p0), fft_type=FFT, fft_length={1152}") + parts), 20);
  Check(With({"c64[3,512]"}, std::string("  y = c64[3,512] fft(p0), fft_type=IFFT, fft_length={512}") + parts), 20);
}

}  // namespace
}  // namespace gangway::equivalence
