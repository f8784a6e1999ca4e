// Every program of testdata/ against what XLA's CPU compiler computed for it.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gangway/eval/evaluate.h"
#include "gangway/hlo/text.h"

namespace gangway::eval {
namespace {

constexpr char kFolder[] = "gangway/eval/testdata";

struct Golden {
  std::vector<Literal> arguments, results;
};

Golden ReadValues(const std::string& path) {
  Golden golden;
  std::ifstream file(path);
  std::string kind, type, line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string hex;  // absent for empty arrays
    fields >> kind >> type >> hex;
    std::string bytes = absl::HexStringToBytes(hex);
    Literal literal(ParseShape(type).value(), std::vector<char>(bytes.begin(), bytes.end()));
    (kind == "argument" ? golden.arguments : golden.results).push_back(std::move(literal));
  }
  return golden;
}

// Relative error that a chain of roundings in the type may show; XLA's approximations of functions included.
double Tolerance(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kC128:
      return 1e-12;
    case DType::kF32:
    case DType::kC64:
      return 2e-5;
    case DType::kF16:
      return 4e-3;
    case DType::kBF16:
      return 3e-2;
    default:
      return 0;
  }
}

bool Near(double got, double want, double tolerance) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (got == want) return true;
  return std::fabs(got - want) <= tolerance * std::max(1.0, std::fabs(want));
}

void ExpectNear(const Literal& got, const Literal& want, const std::string& what) {
  ASSERT_TRUE(Shape::Compatible(got.shape(), want.shape())) << what << ": " << got.shape().ToString();
  DType dtype = want.shape().dtype();
  double tolerance = Tolerance(dtype);
  int width = ByteWidth(dtype);
  for (int64_t i = 0; i < want.shape().ElementCount(); ++i) {
    const char *g = got.data() + i * width, *w = want.data() + i * width;
    bool same = IsInteger(dtype) || dtype == DType::kPred
                    ? std::memcmp(g, w, width) == 0
                    : Near(ElementAsDouble(dtype, g), ElementAsDouble(dtype, w), tolerance) &&
                          Near(ImaginaryAsDouble(dtype, g), ImaginaryAsDouble(dtype, w), tolerance);
    EXPECT_TRUE(same) << what << " " << want.shape().ToString() << " element " << i << ": got "
                      << ElementAsDouble(dtype, g) << ", want " << ElementAsDouble(dtype, w);
  }
}

class GoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, ComputesWhatXlaComputes) {
  std::ifstream file(absl::StrCat(kFolder, "/", GetParam(), ".hlo"));
  std::stringstream text;
  text << file.rdbuf();
  auto module = hlo::ParseModule(text.str());
  ASSERT_TRUE(module.ok()) << module.status();
  Golden golden = ReadValues(absl::StrCat(kFolder, "/", GetParam(), ".values"));
  absl::StatusOr<Literal> result = Evaluate(**module, golden.arguments);
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<Literal> results = result->shape().IsTuple() ? result->elements() : std::vector<Literal>{*result};
  ASSERT_EQ(results.size(), golden.results.size());
  for (size_t i = 0; i < results.size(); ++i) ExpectNear(results[i], golden.results[i], absl::StrCat("result ", i));
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".hlo") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Programs, GoldenTest, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace gangway::eval
