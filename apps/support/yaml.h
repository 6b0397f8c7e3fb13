// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/support/flags.h"

namespace weft::support {

/// One section of a YAML file of configurations, such as
///   default: &DEFAULT
///     lr: 1E-3
///   test:
///     <<: *DEFAULT
///     batch_size: 16
/// Anchors and merge keys (also a list of several, also nested) are resolved; `!!bool True`, `!!float 5E-4` are what
/// they say; the text 'None' is no value. Each `read` binds a key to a variable whose present value is the default.
/// All errors are UsageErrors of one line, `FILE:LINE: KEY: expected …, got …`.
class YamlSection {
 public:
  /// Errors: no such file, not YAML (with the line), no such section (names those there are).
  YamlSection(const std::filesystem::path& path, const std::string& section);
  /// The whole file is one section.
  explicit YamlSection(const std::filesystem::path& path);
  ~YamlSection();
  YamlSection(YamlSection&&) noexcept;

  /// Each returns whether the key is there and not 'None'. A text that begins with `~/` begins with the home folder
  /// (io/home.h). Errors: not such a value, out of range.
  bool read(const std::string& key, int64_t& variable, Range range = {});
  bool read(const std::string& key, double& variable, Range range = {});
  bool read(const std::string& key, bool& variable);
  bool read(const std::string& key, std::string& variable);
  bool read(const std::string& key, std::vector<int64_t>& variable);
  /// One word of a list.
  bool read(const std::string& key, std::string& variable, const std::vector<std::string>& choices);
  /// `FILE:LINE: KEY`, for an error about a value that has been read; `FILE: KEY` where the key is not there.
  std::string where(const std::string& key) const;
  /// The content of a key that is not read: the values of its section by name, or its own, without those that are
  /// nothing, `no` or `false`, an empty text, list or section.
  std::vector<std::pair<std::string, std::string>> settings(const std::string& key);
  /// A key that means nothing here and is no error.
  void ignore(const std::string& key);

  /// The keys of this section that nobody has read or ignored are errors; names the nearest known one.
  void finish() const;

 private:
  struct Node;
  std::unique_ptr<Node> node_;
};

}  // namespace weft::support
