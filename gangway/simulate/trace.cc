// A forecast as a Chrome trace: one process, a row for what computes and for each kind of link.
#include <nlohmann/json.hpp>

#include "gangway/simulate/forecast.h"

namespace gangway::simulate {
namespace {

using nlohmann::json;

constexpr const char* kRows[] = {"device", "links of the island", "network"};

json NameEvent(const char* what, int row, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", 1}, {"tid", row}, {"args", {{"name", name}}}};
}

json SpanEvent(const cost::Span& span) {
  constexpr double kMicroseconds = 1e6;
  return {{"ph", "X"},
          {"name", span.instruction->name()},
          {"pid", 1},
          {"tid", static_cast<int>(span.engine)},
          {"ts", span.begin * kMicroseconds},
          {"dur", (span.end - span.begin) * kMicroseconds},
          {"args",
           {{"opcode", hlo::OpcodeName(span.instruction->opcode())},
            {"op_name", span.instruction->metadata().op_name},
            {"computation", span.instruction->parent()->name()}}}};
}

}  // namespace

std::string ToTrace(const Forecast& forecast) {
  json events = json::array();
  events.push_back(NameEvent("process_name", 0, forecast.name));
  for (int row = 0; row < 3; ++row) events.push_back(NameEvent("thread_name", row, kRows[row]));
  for (const cost::Span& span : forecast.timeline.spans) events.push_back(SpanEvent(span));
  return json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump(-1, ' ', false,
                                                                                  json::error_handler_t::replace);
}

}  // namespace gangway::simulate
