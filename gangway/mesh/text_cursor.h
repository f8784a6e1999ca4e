// Reads sharding texts token by token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gangway/mesh/mesh.h"
#include "gangway/mesh/sharding.h"

namespace gangway {

// A position in a text; spaces before tokens are skipped. Borrows the text.
class TextCursor {
 public:
  explicit TextCursor(absl::string_view text) : text_(text), rest_(text) {}

  bool Peek(absl::string_view token);
  bool Consume(absl::string_view token);  // false, and nothing read, when something else comes
  absl::Status Expect(absl::string_view token);
  absl::StatusOr<int64_t> Int();  // not negative, below 2^31
  // Integers separated by commas, up to and including `close`.
  absl::StatusOr<std::vector<int64_t>> IntsUntil(absl::string_view close);
  absl::StatusOr<std::string> Quoted(char quote);
  absl::StatusOr<std::string> Word();  // letters, digits, '_', '.', '-'
  absl::Status SkipBalanced();         // one {...} group, quoted strings inside respected
  absl::Status ExpectEnd();
  absl::Status Error(absl::string_view expected) const;

 private:
  void SkipSpaces();

  absl::string_view text_;
  absl::string_view rest_;
};

// 'x' or 'x':(1)2, the name quoted by `quote`.
absl::StatusOr<AxisRef> ConsumeAxis(TextCursor* cursor, char quote, const Mesh& mesh);
// Axes separated by commas up to `}`; the `{` was read.
absl::StatusOr<AxisList> ConsumeAxes(TextCursor* cursor, char quote, const Mesh& mesh);
// Names and sizes, 'x'=2,'y'=2, up to `]`; the `[` was read.
absl::StatusOr<std::vector<MeshAxis>> ConsumeMeshAxes(TextCursor* cursor, char quote);
// Dimensions, {'x'},{?}p1, up to `]`; the `[` was read.
absl::StatusOr<std::vector<DimSharding>> ConsumeDims(TextCursor* cursor, char quote, const Mesh& mesh);

}  // namespace gangway
