// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/weights/name_map.h"

namespace weft::weft_weights {

/// The command line.
struct Options {
  std::string command;             ///< show, convert, diff
  std::vector<std::string> files;  ///< one for show, else two
  std::string key;                 ///< which dict of the (first) file
  RenameOptions rename;            ///< renames the (first) file's tensors
  bool json = false;
  std::string dtype = "keep";        ///< f32, bf16, f16, f64: dtype of floating tensors in the output
  std::string max_shard_size = "0";  ///< bytes; 0: one file
  bool checkpoint = false;           ///< convert all parts of one, not weights alone
  bool dry_run = false;              ///< option of convert
  double atol = 0, rtol = 0;
  bool ignore_dtype = false;
};

/// Reads `weft-weights COMMAND [flags] FILE…`. Empty: help was printed. Errors: UsageError.
std::optional<Options> parse_options(const std::vector<std::string>& arguments);

/// `5GB`, `500MiB`, `1000`: bytes. Errors: UsageError naming the flag.
uint64_t parse_bytes(const std::string& flag, const std::string& text);

/// The first file, renamed by the options.
std::unique_ptr<WeightsFile> open_first(const Options& options);

/// The exit code, once all that was printed is written. Errors: a full disk, which would cut a table short.
int printed(int code);

int show(const Options& options);
int convert(const Options& options);
int diff(const Options& options);

}  // namespace weft::weft_weights
