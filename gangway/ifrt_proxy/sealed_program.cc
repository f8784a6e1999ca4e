#include "gangway/ifrt_proxy/sealed_program.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gangway/base/mix.h"
#include "gangway/ifrt_proxy/protocol.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "xla/python/pjrt_ifrt/xla_compiler.pb.h"

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

// The same in every process.
uint64_t HashOf(absl::string_view bytes, uint64_t seed) {
  uint64_t hash = Mix(seed, bytes.size());
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), sizeof hash))) {
    uint64_t word = 0;
    std::copy_n(bytes.data(), std::min(bytes.size(), sizeof word), reinterpret_cast<char*>(&word));
    hash = Mix(hash, word);
  }
  return hash;
}

// Options that mean the same are written the same, by whomever.
std::string Canonical(const xla::ifrt::Serialized& options) {
  xla::ifrt::XlaCompileOptionsProto parsed;
  if (!parsed.ParseFromString(options.data())) return options.data();
  std::string text;
  google::protobuf::io::StringOutputStream stream(&text);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  parsed.SerializeToCodedStream(&coded);
  coded.Trim();
  return text;
}

}  // namespace

std::string FingerprintOf(const CompileRequest& request) {
  const std::string options = Canonical(request.compile_options());
  std::string fingerprint;
  for (uint64_t seed : {1, 2}) {
    uint64_t hash = HashOf(options, HashOf(request.program().data(), seed));
    for (const std::string& callback : request.host_callbacks()) hash = HashOf(callback, hash);
    absl::StrAppend(&fingerprint, absl::Hex(hash, absl::kZeroPad16));
  }
  return fingerprint;
}

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
