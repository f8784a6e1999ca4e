#include "gangway/cli/explanation.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gangway/base/status.h"
#include "gangway/explain/explain.h"
#include "gangway/stablehlo/reader.h"

namespace gangway::cli {
namespace {

constexpr double kLongestOnAServer = 60;  // seconds that remedies are looked for

// "dot.3=P('data', None)"
absl::StatusOr<std::vector<explain::Annotation>> Annotations(const std::vector<std::string>& texts) {
  std::vector<explain::Annotation> annotations;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.second.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--annotate: expected INSTRUCTION=P(...), got '", text, "'"));
    }
    annotations.push_back({parts.first, parts.second});
  }
  return annotations;
}

// "" where no array above the limit stands on every device.
std::string Replicated(const explain::Explanation& explanation, int64_t limit) {
  const explain::Tensor* largest = explain::LargestReplicated(explanation);
  if (limit < 0 || largest == nullptr || largest->bytes <= limit) return "";
  return absl::StrCat(largest->place.ToString(), " ", largest->shape, " stands on all ", explanation.devices,
                      " devices in full: ", largest->bytes, " bytes, allowed ", limit);
}

}  // namespace

std::vector<CLI::Option*> AddExplanationOptions(CLI::App& command, ExplanationOptions* options) {
  std::vector<CLI::Option*> added;
  const auto add = [&](CLI::Option* option) { added.push_back(option); };
  add(command.add_option("--format", options->format, "text, json, or html: one page that needs nothing else")
          ->check(CLI::IsMember({"text", "json", "html"}))
          ->capture_default_str());
  add(command.add_option("--machine", options->machine, "Whose speed the modelled times are: cpu, h100 or tpu-v5p")
          ->capture_default_str());
  add(command.add_option("--max-replicated-bytes", options->max_replicated_bytes,
                         "Fail when a larger array stands on every device in full"));
  add(command
          .add_option("--min-tensor-bytes", options->min_tensor_bytes, "Show the shardings of arrays at least so large")
          ->capture_default_str());
  add(command.add_option("--max-tensors", options->max_tensors, "Show so many arrays at most, the largest")
          ->capture_default_str());
  add(command
          .add_option("--remedy-seconds", options->remedy_seconds,
                      "How long the explanation may take for annotations to be tried that remove collectives, the "
                      "dearest first; "
                      "0 tries none")
          ->capture_default_str());
  add(command
          .add_option("--remedies-for", options->remedies_for,
                      "Try annotations for these collectives only, named as in the JSON")
          ->allow_extra_args(false));
  add(command
          .add_option("--annotate", options->annotations,
                      "Explain the program with an annotation more, INSTRUCTION=P('data', None); may be repeated")
          ->allow_extra_args(false));
  return added;
}

absl::StatusOr<status::Explained> ExplainModule(std::unique_ptr<hlo::Module> module, compile::CompileOptions compile,
                                                const ExplanationOptions& options) {
  explain::ExplainOptions explain;
  explain.compile = std::move(compile);
  GW_ASSIGN_OR_RETURN_WITH(explain.machine, cost::MachineByName(options.machine), "--machine");
  explain.remedy_seconds = options.remedy_seconds;
  explain.remedies_for = options.remedies_for;
  GW_ASSIGN_OR_RETURN(explain.annotations, Annotations(options.annotations));
  explain.min_tensor_bytes = options.min_tensor_bytes;
  explain.max_tensors = options.max_tensors;
  if (options.max_replicated_bytes >= 0) {
    explain.min_tensor_bytes = std::min(explain.min_tensor_bytes, options.max_replicated_bytes);
    explain.max_tensors = INT64_MAX;
  }
  GW_ASSIGN_OR_RETURN(const explain::Explanation explanation, explain::Explain(std::move(module), explain));
  status::Explained explained;
  if (options.format == "json") {
    explained = {explain::ToJson(explanation), "application/json", ""};
  } else if (options.format == "html") {
    explained = {explain::ToHtml(explanation), "text/html; charset=utf-8", ""};
  } else {
    explained = {explain::ToText(explanation), "text/plain; charset=utf-8", ""};
  }
  explained.complaint = Replicated(explanation, options.max_replicated_bytes);
  return explained;
}

absl::StatusOr<status::Explained> ExplainLive(const controller::CompileRequest& program,
                                              const status::Parameters& query) {
  ExplanationOptions options;
  CLI::App parser;
  parser.set_help_flag();
  AddExplanationOptions(parser, &options);
  std::vector<std::string> arguments;
  for (const auto& [name, value] : query) arguments.push_back(absl::StrCat("--", name, "=", value));
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    parser.parse(std::move(arguments));
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(error.what());
  }
  options.remedy_seconds = std::min(options.remedy_seconds, kLongestOnAServer);
  GW_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, stablehlo::ReadPortableArtifact(program.artifact));
  return ExplainModule(std::move(module), program.options, options);
}

}  // namespace gangway::cli
