// Which foreign functions a program may call.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gangway/hlo/module.h"

namespace gangway::compile {

// UNIMPLEMENTED, with target and instruction named, when the module calls what neither we nor XLA's plugins know.
// Whatever passes was written for the server: a function that a client has in its own process, or a symbol of ours that
// happens to have a client's name, is never run.
absl::Status CheckCustomCalls(const hlo::Module& module);

// The program's calls to files are about those in `folder` (CompileOptions::files), whatever its client wrote there.
void NameFileFolder(hlo::Module* module, absl::string_view folder);

// Calls that only say in which memory a value shall be become the value. For devices with one memory, whose plugin does
// not know these calls; the kinds of arguments and results are kept apart from the program.
void DropPlacementCalls(hlo::Module* module);

// Uses that were to keep values from our passes; no plugin knows them.
void DropSinks(hlo::Module* module);

}  // namespace gangway::compile
