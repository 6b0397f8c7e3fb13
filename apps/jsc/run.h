// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace weft::jsc {

/// The flags of one_gpu and ddp; the originals have none, and these are their values.
struct Options {
  std::string data = "data/hymenoptera_data";
  std::string backbone = "resnet18";
  int64_t epochs = 50;
  int64_t batch_size = 1;
  int64_t seed = 42;
  std::string device = "auto";
  int64_t workers = 2;
  bool dry_run = false;
  std::string toml;  ///< Flags::toml()
};

/// Reads the command line. False: --help was printed. Errors: UsageError, see support::Flags.
bool parse_options(const std::string& program, const std::string& purpose, int argc, char** argv, Options& options);

/// What one_gpu and ddp do between main()'s braces; `alone`: without looking for other ranks. Returns the exit code.
int run(const std::string& program, const std::string& purpose, bool alone, int argc, char** argv);

}  // namespace weft::jsc
