// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace weft::train {

/// The key under which checkpoints and exported weights hold the names of a classifier's classes, in the order of its
/// outputs, as a JSON list. Names are kept `printable`.
inline constexpr const char* kClassNames = "class_names";
std::string class_names_text(const std::vector<std::string>& names);
/// The class names among a file's texts; none if this key is missing or has another content.
std::vector<std::string> class_names_of(const std::map<std::string, std::string>& texts);

/// `classes.txt` of a run folder: a line `INDEX<tab>NAME` for each class.
void write_class_names(const std::filesystem::path& folder, const std::vector<std::string>& names);

/// The class names behind a set's labels, and a note for the user; "" if there is no news.
struct MatchedClasses {
  std::vector<std::string> classes;  ///< for data::with_classes(); empty: those of the set
  std::string note;
};

/// How the classes of the weights in `file` are matched.
enum class MatchClasses : uint8_t {
  evaluate,    ///< each of the set's must be one of the file's
  same,        ///< other names are an error
  start_from,  ///< other names are said: the classifier learns them
};

/// Matches a set's classes with `saved`, the file's (class_names_of()): by name, so that their order does not matter;
/// by number where one side has numbers for names (0, 1, …) or none. Errors: names that differ, in all cases but
/// start_from; the text lists them.
MatchedClasses match_classes(const std::string& file, const std::vector<std::string>& saved,
                             const std::vector<std::string>& set, MatchClasses how);

/// Errors unless a run that goes on from `file` counts its classes as the file does, by name.
void require_same_classes(const std::string& file, const std::map<std::string, std::string>& texts,
                          const std::vector<std::string>& set);

}  // namespace weft::train
