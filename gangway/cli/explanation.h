// What `gangway explain` and a status page's /explain have in common: their options, and the answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "gangway/compile/compile.h"
#include "gangway/hlo/module.h"
#include "gangway/status/server.h"

namespace gangway::cli {

struct ExplanationOptions {
  std::string format = "text";
  std::string machine = "cpu";
  int64_t max_replicated_bytes = -1;
  int64_t min_tensor_bytes = 1 << 20;
  int64_t max_tensors = 50;
  double remedy_seconds = 1.5;
  std::vector<std::string> remedies_for;
  std::vector<std::string> annotations;
};

// Adds those options to `command`, which fills `options`, and returns them.
std::vector<CLI::Option*> AddExplanationOptions(CLI::App& command, ExplanationOptions* options);

// Errors are those of explain::Explain, and of options that say nothing clear.
absl::StatusOr<status::Explained> ExplainModule(std::unique_ptr<hlo::Module> module, compile::CompileOptions compile,
                                                const ExplanationOptions& options);

// For status::Serve: the parameters of a query are these options, without their dashes. Programs are explained as they
// were compiled.
absl::StatusOr<status::Explained> ExplainLive(const controller::CompileRequest& program,
                                              const status::Parameters& query);

}  // namespace gangway::cli
