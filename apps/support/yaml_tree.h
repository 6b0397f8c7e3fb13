// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <deque>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace weft::support {

/// A value of a YAML file and the line on which it begins.
struct YamlNode {
  enum class Kind { none, scalar, sequence, map };

  Kind kind = Kind::none;
  int line = 0;
  std::string tag;   ///< `tag:yaml.org,2002:bool` of `!!bool`; `!` of a text in quotes; else empty
  std::string text;  ///< content of a scalar
  std::vector<const YamlNode*> items;
  std::vector<std::pair<const YamlNode*, const YamlNode*>> entries;  ///< content of a map; the keys are scalars
};

/// A whole file. An alias is the node of its anchor; no node holds itself.
struct YamlTree {
  std::deque<YamlNode> arena;
  const YamlNode* root = nullptr;  ///< null where the file is empty
};

/// Errors: UsageErrors `FILE:LINE: …`: no such file, not YAML, a key that is no text, several documents; Weft was built
/// without yaml-cpp.
YamlTree parse_yaml(const std::filesystem::path& path);

/// Whether YAML can be read at all (Weft was built with yaml-cpp).
bool have_yaml();

}  // namespace weft::support
