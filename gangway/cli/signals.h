// Signals of the terminal and of operators, as something a loop can look at.
#pragma once

namespace gangway::cli {

// From now on SIGINT, SIGTERM and SIGHUP no longer end the process but are remembered. Call once, before threads are
// started.
void CatchSignals();
// The last one caught, 0 for none; the second SIGINT or SIGTERM makes it urgent.
int CaughtSignal();
int CaughtCount();

}  // namespace gangway::cli
