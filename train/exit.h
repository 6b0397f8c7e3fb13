// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "kernels/error.h"

namespace weft::train {

/// The user asked for something that does not exist: an unknown flag, a value out of range. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

inline constexpr int kExitOk = 0, kExitError = 1, kExitUsage = 2;
/// A signal ended the run early and its checkpoint is written: submit it again (sysexits.h calls this EX_TEMPFAIL).
inline constexpr int kExitRequeue = 75;

/// Runs a program's body and returns its exit code. An exception becomes one line `PROGRAM: error: …` on stderr and
/// exit code 1 (2 for UsageError): no stack trace, no abort.
///   int main(int argc, char** argv) { return guarded_main("train", [&] { … return kExitOk; }); }
int guarded_main(const std::string& program, const std::function<int()>& body);

}  // namespace weft::train
