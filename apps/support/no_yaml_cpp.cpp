// SPDX-License-Identifier: Apache-2.0
// Stands in for yaml_cpp.cpp where yaml-cpp was not found.
#include "apps/support/yaml_tree.h"
#include "train/exit.h"

namespace weft::support {

bool have_yaml() { return false; }

YamlTree parse_yaml(const std::filesystem::path& path) {
  throw train::UsageError(
      path.string() +
      ": expected a build with yaml-cpp, got one without. Install libyaml-cpp-dev, configure and build "
      "again");
}

}  // namespace weft::support
