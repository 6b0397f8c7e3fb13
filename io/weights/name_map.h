// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/weights/weights_file.h"

namespace weft {

/// The parts of a name that the wildcards of a pattern (see NameRule) matched.
struct NameMatch {
  std::vector<std::string> captures;  ///< for each `#` and `*`
  size_t word = 0;                    ///< which of the words between braces
};

/// Nothing unless the whole name matches.
std::optional<NameMatch> match_name(std::string_view pattern, std::string_view name);

/// The pattern with the captures filled in, and the word with this number.
std::string fill_name(std::string_view pattern, const NameMatch& match);

/// The words between braces; none without braces.
std::vector<std::string> words_of(std::string_view pattern);

/// One row of a table of names. In `from`, `#` stands for a number, `*` for any string, `@` for a number that is
/// dropped, `{query,key,value}` for one of these words; in `to` each `#` and `*` repeats the next of them. Words on the
/// left: these tensors become one, stacked along dimension 0 in the order of the words. Words on the right: one tensor
/// is cut into as many equal parts. An empty `to` leaves the tensor out.
struct NameRule {
  const char *from, *to;
  bool both_ways = true;  ///< also a row of the inverse map
  bool turned = false;    ///< the matrix is transposed
};

/// The names of a publisher's files (`from`) and of Weft's modules (`to`). A name that matches no row stays.
struct NameMap {
  const char* name;
  std::vector<NameRule> rules;
  std::vector<const char*> prefixes;  ///< stripped from names first
  const char* sign = nullptr;         ///< a name that only such files have: `auto` recognises them by it
};

/// Longer names stay unchanged: matching two stars takes time quadratic in the length.
inline constexpr size_t kLongestMappedName = 1000;

/// `dinov2`, `hf_dinov2`, `to_hf_dinov2`, `hf_bert`, `to_hf_bert`, `hf_gpt2`, `to_hf_gpt2`, … : for --map.
std::vector<std::string> name_map_names();

/// Errors: an unknown name; the nearest is suggested.
NameMap find_name_map(const std::string& name);

/// The map that fits these names and sizes; "" for none.
std::string guess_name_map(const std::vector<WeightInfo>& tensors);

struct RenameOptions {       // `{}`: g++ then allows designated initialisers of some members only
  std::string prefix{};      ///< keep only names with this prefix, without it: `backbone.`
  std::string map{};         ///< a name of name_map_names(), `auto`, or "" for none
  std::string add_prefix{};  ///< put before all names
  std::string leave_out{};   ///< last: drop names with this prefix, such as `head.`
  std::string put_first{};   ///< put before all names ahead of the map, which knows the published prefix alone
};

/// The file's tensors under other names, still read on demand. The additions of PyTorch's wrappers are stripped first:
/// a `module.` before all names (DistributedDataParallel, AveragedModel), `_orig_mod.` of torch.compile and those of
/// FSDP and of recomputation anywhere. Errors: no name has the prefix; two tensors get one name; a part of a
/// stacked tensor is missing or does not fit.
std::unique_ptr<WeightsFile> renamed_weights(std::unique_ptr<WeightsFile> file, const RenameOptions& options);

/// Renames a model's state; tensors on the CPU.
StateDict renamed_state(const StateDict& state, const RenameOptions& options);

}  // namespace weft
