// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "io/weights/name_map.h"
#include "nn/module.h"

namespace weft::train {

struct LoadWeightsOptions {
  bool strict = true;  ///< every mismatch is an error; else the model keeps its values there, with a report
  std::string key{};   ///< OpenWeightsOptions::key
  RenameOptions rename{};
};

/// The parameters that a file gave to a model, by name.
struct LoadedWeights {
  size_t loaded = 0;
  std::vector<std::string> missing;     ///< the model's parameters that the file lacks
  std::vector<std::string> unexpected;  ///< in the file, not of the model
  std::vector<std::string> misshapen;   ///< `fc.weight (expected [10,512], got [1000,512])`

  bool is_whole() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }
  /// `60 tensors loaded; missing: fc.bias; unexpected: …`, at most `limit` names of each kind.
  std::string text(size_t limit = 5) const;
};

/// Copies a file's tensors of any format (open_weights) into a model, a part at a time: the file is never in memory as
/// a whole. A prefix before all names of the file, behind which are the model's (`model.` of Lightning), is stripped.
/// Nothing of the model changes when the names do not fit. Under nn::DeferredInit parameters are read in parts when
/// they are written, and its check_sources() compares checksums of the whole file. Errors: the file's; when strict,
/// names and shapes that do not fit, and the prefix with which they would; no tensor fits at all.
LoadedWeights load_weights(nn::Module& model, const std::filesystem::path& path,
                           const LoadWeightsOptions& options = {});

}  // namespace weft::train
