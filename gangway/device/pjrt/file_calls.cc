#include "gangway/device/pjrt/file_calls.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gangway/base/status.h"
#include "gangway/device/pjrt/ffi_attributes.h"
#include "gangway/device/pjrt/ffi_handler.h"
#include "gangway/device/pjrt/hosted.h"
#include "gangway/files/folder.h"
#include "gangway/files/read.h"
#include "gangway/files/write.h"
#include "gangway/tensor/dtype.h"

namespace gangway::device::pjrt {
namespace {

// An operand or result, which stays until the call is over; the frame that told of it does not.
struct Array {
  char* data = nullptr;
  files::Dims dims;
  int64_t width = 1;

  absl::string_view bytes() const {
    int64_t size = width;
    for (int64_t dim : dims) size *= dim;
    return {data, static_cast<size_t>(size)};
  }
};

struct Call {
  std::string folder;  // that clients may use
  std::vector<Array> operands, results;

  // The lines of the first operand, resolved.
  absl::StatusOr<std::vector<std::string>> Paths() const {
    absl::string_view text = operands[0].bytes();
    text = text.substr(0, text.find('\0'));
    std::vector<std::string> paths;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      GW_ASSIGN_OR_RETURN(paths.emplace_back(), files::Resolve(folder, line));
    }
    return paths;
  }

  // Of operand 1, at least `least`.
  absl::StatusOr<std::vector<int64_t>> Numbers(size_t least) const {
    const absl::string_view bytes = operands[1].bytes();
    std::vector<int64_t> numbers(bytes.size() / sizeof(int64_t));
    if (numbers.size() < least) return absl::InvalidArgumentError("a call to a file with too few numbers");
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(int64_t));
    return numbers;
  }

  absl::Status Answer(int32_t value) const {
    if (results[0].bytes().size() != sizeof value) return absl::InvalidArgumentError("a file's call gives an s32[]");
    std::memcpy(results[0].data, &value, sizeof value);
    return absl::OkStatus();
  }
};

absl::Status Write(const Call& call) {
  GW_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, call.Numbers(2));
  GW_RETURN_IF_ERROR(call.Answer(0));
  if (numbers[1] == 0) return absl::OkStatus();
  GW_ASSIGN_OR_RETURN(const std::vector<std::string> paths, call.Paths());
  const absl::string_view data = call.operands[2].bytes();
  if (numbers[1] < 0 || numbers[1] > static_cast<int64_t>(data.size())) {
    return absl::InvalidArgumentError(absl::StrCat(paths[0], ": ", numbers[1], " bytes of ", data.size()));
  }
  return files::WriteAt(paths[0], numbers[0], data.substr(0, static_cast<size_t>(numbers[1])));
}

absl::Status Commit(const Call& call) {
  GW_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, call.Numbers(2));
  GW_RETURN_IF_ERROR(call.Answer(0));
  if (numbers[1] == 0) return absl::OkStatus();
  GW_ASSIGN_OR_RETURN(const std::vector<std::string> paths, call.Paths());
  if (paths.size() < 2) return absl::InvalidArgumentError(absl::StrCat(paths[0], ": without a final name"));
  return files::Commit(paths[0], numbers[0], paths[1], {paths.begin() + 2, paths.end()});
}

absl::Status Size(const Call& call) {
  GW_ASSIGN_OR_RETURN(const std::vector<std::string> paths, call.Paths());
  GW_ASSIGN_OR_RETURN(const int64_t size, files::SizeOf(paths[0]));
  if (call.results[0].bytes().size() != sizeof size) return absl::InvalidArgumentError("a file's size is u8[8]");
  std::memcpy(call.results[0].data, &size, sizeof size);
  return absl::OkStatus();
}

absl::Status Start(const Call& call) {
  GW_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, call.Numbers(1));
  GW_ASSIGN_OR_RETURN(const std::vector<std::string> paths, call.Paths());
  const absl::string_view room = call.results[0].bytes();
  if (numbers[0] < 0 || numbers[0] > static_cast<int64_t>(room.size())) {
    return absl::InvalidArgumentError(absl::StrCat(paths[0], ": ", numbers[0], " bytes into ", room.size()));
  }
  std::memset(call.results[0].data, 0, room.size());
  return files::ReadStart(paths[0], call.results[0].data, numbers[0]);
}

absl::Status Read(const Call& call) {
  GW_ASSIGN_OR_RETURN(const std::vector<std::string> paths, call.Paths());
  GW_ASSIGN_OR_RETURN(const std::vector<int64_t> plan, call.Numbers(1));
  const Array& result = call.results[0];
  const size_t rank = result.dims.size(), length = 2 + 4 * rank;
  const files::Destination destination{result.data, result.dims, result.width};
  for (size_t at = 1, piece = 0; piece < static_cast<size_t>(std::max<int64_t>(0, plan[0])); ++piece, at += length) {
    const bool whole = at + length <= plan.size();
    if (!whole || plan[at] < 0 || plan[at] >= static_cast<int64_t>(paths.size())) {
      return absl::InvalidArgumentError(absl::StrCat(paths[0], ": piece ", piece, " of a plan that is malformed"));
    }
    auto dims = [&](size_t group) {
      const auto begin = plan.begin() + static_cast<ptrdiff_t>(at + 2 + group * rank);
      return files::Dims(begin, begin + static_cast<ptrdiff_t>(rank));
    };
    GW_RETURN_IF_ERROR(files::ReadPiece(
        {paths[static_cast<size_t>(plan[at])], plan[at + 1], dims(0), dims(1), dims(2), dims(3)}, destination));
  }
  return absl::OkStatus();
}

struct FileCall {
  absl::string_view target;
  int operands;
  absl::Status (*run)(const Call&);
};

constexpr FileCall kWrite = {"gangway.file_write", 3, &Write}, kCommit = {"gangway.file_commit", 2, &Commit},
                   kSize = {"gangway.file_size", 1, &Size}, kStart = {"gangway.file_start", 2, &Start},
                   kRead = {"gangway.file_read", 2, &Read};

absl::StatusOr<Array> ToArray(const void* buffer) {
  const auto& b = *static_cast<const XLA_FFI_Buffer*>(buffer);
  const DType dtype = static_cast<DType>(b.dtype);
  const bool packed = dtype != DType::kPred && BitWidth(dtype) < 8;
  if (!IsElement(dtype) || packed) {
    return absl::UnimplementedError(absl::StrCat("files of elements of type ", DTypeName(dtype)));
  }
  return Array{static_cast<char*>(b.data), {b.dims, b.dims + b.rank}, ByteWidth(dtype)};
}

// The file is written or read on the thread where host callbacks go on: it may take long, and the thread that launched
// the program serves other devices too.
absl::Status StartCall(const FileCall& file_call, XLA_FFI_CallFrame* frame) {
  GW_ASSIGN_OR_RETURN(const HostedCall hosted, FindLaunch(*frame));
  if (frame->args.size != file_call.operands || frame->rets.size != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_call.target, " has ", file_call.operands, " operands, 1 result"));
  }
  const FfiAttributes attributes(frame->attrs);
  absl::string_view owner;
  if (attributes.Has("folder")) {
    GW_ASSIGN_OR_RETURN(owner, attributes.String("folder"));
  }
  GW_ASSIGN_OR_RETURN(std::string folder, files::OwnFolder(hosted->device->instance()->files, owner));
  Call call{std::move(folder), {}, {}};
  for (int64_t i = 0; i < frame->args.size; ++i) {
    GW_ASSIGN_OR_RETURN(call.operands.emplace_back(), ToArray(frame->args.args[i]));
  }
  GW_ASSIGN_OR_RETURN(call.results.emplace_back(), ToArray(frame->rets.rets[0]));
  GW_ASSIGN_OR_RETURN(XLA_FFI_Future * future, MakeFuture(frame));
  hosted->device->callback_thread().Post([api = frame->api, future, &file_call, call = std::move(call)] {
    CompleteFuture(*api, future, file_call.run(call));
  });
  return absl::OkStatus();
}

template <const FileCall& file_call>
XLA_FFI_Error* Handler(XLA_FFI_CallFrame* frame) {
  if (AnswerMetadata(frame)) return nullptr;
  return ToError(*frame->api, StartCall(file_call, frame));
}

template <const FileCall&... file_calls>
absl::Status Register(const Plugin& plugin, const FfiExtension& ffi) {
  absl::Status status;
  (status.Update(RegisterHandler(plugin, ffi, file_calls.target, &Handler<file_calls>)), ...);
  return status;
}

}  // namespace

absl::Status RegisterFileCalls(const Plugin& plugin, const FfiExtension& ffi) {
  return Register<kWrite, kCommit, kSize, kStart, kRead>(plugin, ffi);
}

}  // namespace gangway::device::pjrt
