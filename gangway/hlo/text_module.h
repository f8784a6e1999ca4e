// The parts of HLO text around computations: the HloModule line and the stack frame tables. Internal to hlo/.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "gangway/hlo/module.h"
#include "gangway/hlo/text_lexer.h"

namespace gangway::hlo {

// `HloModule name, key=value, ...`
absl::StatusOr<std::unique_ptr<Module>> ReadModuleLine(TextLexer* lexer);
void PrintModuleLine(const Module& module, std::string* out);

// FileNames, FunctionNames, FileLocations, StackFrames; nothing when the text has none.
absl::Status ReadStackFrames(TextLexer* lexer, StackFrames* frames);
void PrintStackFrames(const StackFrames& frames, std::string* out);

// Name under which a program's meshes travel as a frontend attribute of the module.
inline constexpr char kMeshesAttribute[] = "xla.sdy.meshes";
// Fills module->meshes() from that attribute when it is there.
absl::Status ReadMeshesAttribute(Module* module);
// The module's frontend attributes, with the meshes added when there are some and the attribute is not there.
FrontendAttributes AttributesWithMeshes(const Module& module);

}  // namespace gangway::hlo
