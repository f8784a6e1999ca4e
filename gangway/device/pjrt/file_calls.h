// Files of the host (gangway/files) as handlers of the XLA FFI: how a checkpoint's shards leave and enter a device.
#pragma once

#include "absl/status/status.h"
#include "gangway/device/pjrt/ffi_extension.h"
#include "gangway/device/pjrt/plugin.h"

namespace gangway::device::pjrt {

// Before the plugin's first client is made. The handlers keep no state: the folder that clients may use is their
// device's (PjrtOptions::files), or a folder in that, named by the attribute "folder" (CompileOptions::files). Texts
// are u8 and end at the first NUL; numbers are i64, given as the bytes of any array; `text` holds paths, one a line.
// All answer i32[1], 0, but for those that say otherwise.
//
//   gangway.file_write(text, numbers {offset, size}, data): the first bytes of data into the file; none: it stays
//   gangway.file_commit(text {partial, final, obsolete...}, numbers {size, enabled}): see files::Commit
//   gangway.file_size(text) -> u8[8]: the bytes of an i64
//   gangway.file_start(text, numbers {size}) -> u8[n]: the file's first bytes, n or fewer
//   gangway.file_read(text, plan) -> an array, put together of pieces. The plan: their number, then of each the line of
//     its path, the offset, and the array's rank times saved, from, to and extent (files::Piece)
absl::Status RegisterFileCalls(const Plugin& plugin, const FfiExtension& ffi);

}  // namespace gangway::device::pjrt
