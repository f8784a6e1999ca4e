// Text of windows and of convolution dimension numbers: window={size=3x3 pad=1_1x0_0}, dim_labels=b01f_01io->b01f.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gangway/hlo/text_attributes.h"

namespace gangway::hlo {
namespace {

constexpr size_t kMaxWindowRank = 256;

absl::Status Malformed(absl::string_view what, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("window: ", what, ", not '", text, "'"));
}

// Sets one field of every dimension from `1x2x3`.
template <typename Set>
absl::Status ReadField(absl::string_view text, Window* window, Set set) {
  std::vector<absl::string_view> parts = absl::StrSplit(text, 'x');
  if (window->empty() && parts.size() <= kMaxWindowRank) window->resize(parts.size());
  if (parts.size() != window->size()) return Malformed("the same number of dimensions everywhere", text);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!set(parts[i], &(*window)[i])) return Malformed("numbers joined by x", text);
  }
  return absl::OkStatus();
}

absl::Status ReadNamedField(absl::string_view key, absl::string_view value, Window* window) {
  if (key == "pad") {
    return ReadField(value, window, [](absl::string_view part, WindowDim* dim) {
      std::vector<absl::string_view> sides = absl::StrSplit(part, '_');
      return sides.size() == 2 && absl::SimpleAtoi(sides[0], &dim->pad_low) &&
             absl::SimpleAtoi(sides[1], &dim->pad_high);
    });
  }
  if (key == "rhs_reversal") {
    return ReadField(value, window, [](absl::string_view part, WindowDim* dim) {
      dim->reversal = part == "1";
      return part == "0" || part == "1";
    });
  }
  int64_t WindowDim::*field = key == "size"         ? &WindowDim::size
                              : key == "stride"     ? &WindowDim::stride
                              : key == "lhs_dilate" ? &WindowDim::base_dilation
                              : key == "rhs_dilate" ? &WindowDim::window_dilation
                                                    : nullptr;
  if (field == nullptr) return Malformed("a known field", key);
  return ReadField(value, window,
                   [field](absl::string_view part, WindowDim* dim) { return absl::SimpleAtoi(part, &(dim->*field)); });
}

absl::StatusOr<Window> ReadWindow(AttributeText* text) {
  Window window;
  std::optional<TextLexer> lexer = text->Take("window");
  if (!lexer.has_value()) return window;
  GW_RETURN_IF_ERROR(lexer->Expect("{"));
  while (!lexer->Consume("}")) {
    GW_ASSIGN_OR_RETURN(absl::string_view key, lexer->Name());
    GW_RETURN_IF_ERROR(lexer->Expect("="));
    GW_RETURN_IF_ERROR(ReadNamedField(key, lexer->RawWord(), &window));
  }
  return window;
}

std::string PrintWindow(const Window& window) {
  std::string text;
  auto field = [&](absl::string_view key, auto print, auto is_default) {
    if (std::all_of(window.begin(), window.end(), is_default)) return;
    absl::StrAppend(&text, text.empty() ? "" : " ", key, "=", absl::StrJoin(window, "x", print));
  };
  using D = const WindowDim&;
  field(
      "size", [](std::string* out, D d) { absl::StrAppend(out, d.size); }, [](D) { return false; });
  field(
      "stride", [](std::string* out, D d) { absl::StrAppend(out, d.stride); }, [](D d) { return d.stride == 1; });
  field(
      "pad", [](std::string* out, D d) { absl::StrAppend(out, d.pad_low, "_", d.pad_high); },
      [](D d) { return d.pad_low == 0 && d.pad_high == 0; });
  field(
      "lhs_dilate", [](std::string* out, D d) { absl::StrAppend(out, d.base_dilation); },
      [](D d) { return d.base_dilation == 1; });
  field(
      "rhs_dilate", [](std::string* out, D d) { absl::StrAppend(out, d.window_dilation); },
      [](D d) { return d.window_dilation == 1; });
  field(
      "rhs_reversal", [](std::string* out, D d) { absl::StrAppend(out, d.reversal ? 1 : 0); },
      [](D d) { return !d.reversal; });
  return absl::StrCat("{", text, "}");
}

absl::StatusOr<Attributes> ReadWindowAttr(const AttributeContext& context, AttributeText* text) {
  GW_ASSIGN_OR_RETURN(Window window, ReadWindow(text));
  // Left out, it is one element in every dimension.
  if (window.empty() && !context.operands.empty()) window.resize(context.operands[0]->shape().rank());
  return Attributes(WindowAttr{std::move(window)});
}

void WriteWindowAttr(const Instruction& instruction, AttributeWriter* writer) {
  const Window& window = instruction.attr<WindowAttr>().window;
  if (!window.empty()) writer->Add("window", PrintWindow(window));
}

// One of the three label groups, `b01f`: places of two letters and of the spatial digits.
absl::Status ReadLabels(absl::string_view labels, char first, char second, int64_t* first_dim, int64_t* second_dim,
                        DimVector* spatial) {
  auto fail = [&] { return absl::InvalidArgumentError(absl::StrCat("dim_labels: malformed '", labels, "'")); };
  if (labels.size() < 2 || labels.size() > 12) return fail();
  *first_dim = *second_dim = -1;
  spatial->assign(labels.size() - 2, -1);
  for (size_t i = 0; i < labels.size(); ++i) {
    const char label = labels[i];
    int64_t* place = nullptr;
    if (label == first) {
      place = first_dim;
    } else if (label == second) {
      place = second_dim;
    } else if (absl::ascii_isdigit(label) && static_cast<size_t>(label - '0') < spatial->size()) {
      place = &(*spatial)[label - '0'];
    }
    if (place == nullptr || *place != -1) return fail();
    *place = static_cast<int64_t>(i);
  }
  return absl::OkStatus();
}

absl::Status ReadDimLabels(absl::string_view text, ConvolutionAttr* attr) {
  std::vector<absl::string_view> sides = absl::StrSplit(text, "->");
  std::vector<absl::string_view> inputs = absl::StrSplit(sides[0], '_');
  if (sides.size() != 2 || inputs.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("dim_labels: expected input_kernel->output, not '", text, "'"));
  }
  GW_RETURN_IF_ERROR(ReadLabels(inputs[0], 'b', 'f', &attr->input_batch, &attr->input_feature, &attr->input_spatial));
  GW_RETURN_IF_ERROR(ReadLabels(inputs[1], 'i', 'o', &attr->kernel_input_feature, &attr->kernel_output_feature,
                                &attr->kernel_spatial));
  return ReadLabels(sides[1], 'b', 'f', &attr->output_batch, &attr->output_feature, &attr->output_spatial);
}

std::string PrintLabels(char first, char second, int64_t first_dim, int64_t second_dim, const DimVector& spatial) {
  std::string labels(spatial.size() + 2, '?');
  auto put = [&](int64_t place, char label) {
    if (place >= 0 && place < static_cast<int64_t>(labels.size())) labels[place] = label;
  };
  for (size_t i = 0; i < spatial.size(); ++i) put(spatial[i], static_cast<char>('0' + i));
  put(first_dim, first);
  put(second_dim, second);
  return labels;
}

absl::StatusOr<Attributes> ReadConvolution(const AttributeContext&, AttributeText* text) {
  ConvolutionAttr attr;
  GW_ASSIGN_OR_RETURN(attr.window, ReadWindow(text));
  std::optional<std::string> labels = text->TakeRaw("dim_labels");
  if (!labels.has_value()) return absl::InvalidArgumentError("attribute dim_labels is missing");
  GW_RETURN_IF_ERROR(ReadDimLabels(*labels, &attr));
  GW_ASSIGN_OR_RETURN(attr.feature_groups, text->TakeInt("feature_group_count", 1));
  GW_ASSIGN_OR_RETURN(attr.batch_groups, text->TakeInt("batch_group_count", 1));
  GW_ASSIGN_OR_RETURN(attr.precision, ReadPrecision(text));
  return Attributes(std::move(attr));
}

void WriteConvolution(const Instruction& instruction, AttributeWriter* writer) {
  const auto& attr = instruction.attr<ConvolutionAttr>();
  if (!attr.window.empty()) writer->Add("window", PrintWindow(attr.window));
  writer->Add(
      "dim_labels",
      absl::StrCat(PrintLabels('b', 'f', attr.input_batch, attr.input_feature, attr.input_spatial), "_",
                   PrintLabels('i', 'o', attr.kernel_input_feature, attr.kernel_output_feature, attr.kernel_spatial),
                   "->", PrintLabels('b', 'f', attr.output_batch, attr.output_feature, attr.output_spatial)));
  if (attr.feature_groups != 1) writer->Add("feature_group_count", attr.feature_groups);
  if (attr.batch_groups != 1) writer->Add("batch_group_count", attr.batch_groups);
  WritePrecision(attr.precision, writer);
}

constexpr AttributeRow kRows[] = {
    {Opcode::kConvolution, ReadConvolution, WriteConvolution},
    {Opcode::kReduceWindow, ReadWindowAttr, WriteWindowAttr},
    {Opcode::kSelectAndScatter, ReadWindowAttr, WriteWindowAttr},
};

}  // namespace

absl::Span<const AttributeRow> WindowAttributeRows() { return kRows; }

}  // namespace gangway::hlo
