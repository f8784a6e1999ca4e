#include "gangway/ifrt_proxy/sealed_program.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gangway/ifrt_proxy/protocol.h"

namespace gangway::ifrt_proxy {
namespace {

using xla::ifrt::proxy::CompileRequest;

// Changes with what follows it.
constexpr absl::string_view kMagic = "gangway sealed program 1";

// Up to the end of the line, which is taken off `text`.
absl::string_view TakeLine(absl::string_view* text) {
  const absl::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(line.size());
  absl::ConsumePrefix(text, "\n");
  return line;
}

}  // namespace

absl::StatusOr<std::string> Seal(const CompileRequest& request) {
  if (request.host_callbacks_size() > 0) {
    return absl::UnimplementedError("it calls functions of its client's process, which cannot be serialized");
  }
  const std::string bytes = request.SerializeAsString();
  return absl::StrCat(kMagic, "\n", kPlatformVersion, "\n", bytes.size(), "\n", bytes);
}

absl::StatusOr<CompileRequest> Unseal(absl::string_view sealed) {
  if (TakeLine(&sealed) != kMagic) return absl::InvalidArgumentError("these bytes are no executable of Gangway's");
  if (const absl::string_view version = TakeLine(&sealed); version != kPlatformVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("an executable of ", version.substr(0, 64), " is not one of ", kPlatformVersion));
  }
  size_t size = 0;
  CompileRequest request;
  if (!absl::SimpleAtoi(TakeLine(&sealed), &size) || sealed.size() != size ||
      !request.ParseFromArray(sealed.data(), static_cast<int>(sealed.size()))) {
    return absl::InvalidArgumentError(absl::StrCat("a damaged executable: ", sealed.size(), " of ", size, " bytes"));
  }
  return request;
}

}  // namespace gangway::ifrt_proxy
