#include "gangway/status/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "nlohmann/json.hpp"

namespace gangway::status {
namespace {

using nlohmann::json;

TEST(JsonWriter, SeparatesWhatIsNested) {
  JsonWriter out;
  out.Open('{').Key("a").Open('[').Number(1).Number(-2).Open('[').Close(']').Close(']');
  out.Key("b").Open('{').Close('}').Key("c").Bool(true).Key("d").Text("x").Close('}');
  EXPECT_EQ(out.text(), R"({"a":[1,-2,[]],"b":{},"c":true,"d":"x"})");
}

TEST(JsonWriter, LinesBeginBehindCommas) {
  JsonWriter out;
  out.Open('[').Line().Number(1).Line().Open('{').Close('}').Close(']');
  EXPECT_EQ(out.text(), "[\n1,\n{}]");
}

TEST(JsonWriter, GoesOnBehindWhatWasTaken) {
  JsonWriter out;
  out.Open('[').Number(1);
  EXPECT_EQ(out.Take(), "[1");
  out.Number(2).Close(']');
  EXPECT_EQ(out.Take(), ",2]");
}

TEST(JsonWriter, TakesAnyText) {
  for (const char* text : {"", "jit_f", "a\"b\\c\n\t", "käse €", "</script>"}) {
    EXPECT_EQ(json::parse(JsonText(text)), json(text));
  }
  EXPECT_EQ(json::parse(JsonText("a\xff")), json("a\xEF\xBF\xBD")) << "what is no UTF-8 is replaced";
  EXPECT_EQ(json::parse(JsonText(absl::string_view("\0", 1))), json(std::string(1, '\0')));
}

TEST(JsonWriter, KeepsNanoseconds) {
  JsonWriter out;
  out.Open('[').Seconds(absl::UnixEpoch() + absl::Seconds(1764552509) + absl::Nanoseconds(7));
  out.Seconds(-absl::Milliseconds(1500)).Microseconds(absl::Nanoseconds(1)).Microseconds(absl::Seconds(2)).Close(']');
  EXPECT_EQ(out.text(), "[1764552509.000000007,-1.500000000,0.001,2000000.000]");
  JsonWriter extreme;
  extreme.Open('[').Seconds(absl::InfiniteDuration()).Seconds(absl::InfinitePast()).Close(']');
  EXPECT_EQ(json::parse(extreme.text()).size(), 2u);
}

}  // namespace
}  // namespace gangway::status
