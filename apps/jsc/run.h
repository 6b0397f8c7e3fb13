// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "train/run_options.h"

namespace weft::jsc {

/// The flags of one_gpu and ddp; the originals have none, and these are their values.
struct Options : train::RunOptions {
  Options() { data = "data/hymenoptera_data", epochs = 50, batch_size = 1, seed = 42; }
  std::string backbone = "resnet18";
};

/// Reads the command line. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(const std::string& program, const std::string& purpose, int argc, char** argv, Options& options);

/// The body of main() of one_gpu and ddp; `alone`: without looking for other ranks. Returns the exit code.
int run(const std::string& program, const std::string& purpose, bool alone, int argc, char** argv);

}  // namespace weft::jsc
