#include "gangway/cli/program_file.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gangway/base/status.h"
#include "gangway/hlo/proto.h"
#include "gangway/hlo/text.h"
#include "gangway/hlo/verifier.h"
#include "gangway/stablehlo/reader.h"

namespace gangway::cli {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return absl::NotFoundError("cannot be opened");
  std::string content(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return absl::NotFoundError("cannot be read");
  return content;
}

// Protos hold bytes that no text has.
bool IsText(absl::string_view content) { return content.find('\0') == absl::string_view::npos; }

// Text that starts with MLIR has a form of its own.
bool IsMlirText(absl::string_view content) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(content), "module") ||
         absl::StrContains(content.substr(0, 2000), "func.func");
}

absl::StatusOr<std::unique_ptr<hlo::Module>> Parse(const std::string& content) {
  if (stablehlo::IsPortableArtifact(content)) {
    auto module = stablehlo::ReadPortableArtifact(content);
    if (!module.ok()) return Annotate(module.status(), "as a StableHLO portable artifact");
    return module;
  }
  if (absl::StrContains(content, "HloModule") && IsText(content)) {
    auto module = hlo::ParseModule(content);
    if (!module.ok()) return Annotate(module.status(), "as HLO text");
    return module;
  }
  if (IsText(content) && IsMlirText(content)) {
    return absl::InvalidArgumentError(
        "is MLIR text; write a portable artifact instead (jax.export, or stablehlo-translate --serialize)");
  }
  auto module = hlo::DeserializeModule(content);
  if (!module.ok()) return Annotate(module.status(), "as an HloModuleProto (it is no artifact and no HLO text)");
  return module;
}

}  // namespace

absl::StatusOr<std::unique_ptr<hlo::Module>> ReadProgram(const std::string& path) {
  GW_ASSIGN_OR_RETURN_WITH(std::string content, ReadFile(path), path);
  if (content.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
  GW_ASSIGN_OR_RETURN_WITH(std::unique_ptr<hlo::Module> module, Parse(content), path);
  GW_RETURN_IF_ERROR_WITH(hlo::Verify(*module), path);
  return module;
}

absl::Status WriteFile(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::fwrite(content.data(), 1, content.size(), stdout);
    return absl::OkStatus();
  }
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.flush();
  if (!file.good()) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

CLI::Option* AddProgramFile(CLI::App& command, std::string* path) {
  return command.add_option(
      "FILE", *path, "Program: StableHLO artifact (jax.export), HLO text or HloModuleProto; - is standard input");
}

}  // namespace gangway::cli
