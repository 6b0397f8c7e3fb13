// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::data {

/// A template in the part of Jinja2 that chat templates use, with the settings of Hugging Face's transformers:
/// `trim_blocks` and `lstrip_blocks`.
///   statements  for … in … [if …] … else, break, continue, if, elif, else, set (also a block, a namespace's member),
///               generation
///
///   operators   + - * / // % ~ == != < > <= >= in, not in, and, or, not, a if c else b, calls, slices, is
///
///   filters     capitalize count d default first int items join last length list lower map(attribute=) rejectattr
///               replace reverse selectattr string title tojson trim upper
///
///   tests       boolean defined divisibleby eq equalto even false ge gt in integer iterable le lt mapping ne none
///               number odd sequence string true undefined
///
///   functions   namespace raise_exception range strftime_now
///
///   methods     of texts: capitalize count endswith find join lower lstrip replace rstrip split splitlines startswith
///               strip title upper; of objects: get items keys values
/// All else is an error that names it, with its line.
class JinjaTemplate {
 public:
  /// `what` begins the errors, such as the file. Errors: a construct beyond those above, another syntax error.
  JinjaTemplate(std::string_view source, std::string what);

  struct Rendered {
    std::string text;
    std::vector<std::pair<size_t, size_t>> generated;  ///< where the parts in `generation` blocks begin and end
  };
  /// `variables`: an object. Errors: a value of another kind than an operation needs, the template's raise_exception,
  /// more than a million steps.
  Rendered render(const nlohmann::ordered_json& variables) const;
  /// Whether there is a `generation` block.
  bool marks_generation() const { return marks_generation_; }

  struct Program;

 private:
  std::string what_;
  std::shared_ptr<const Program> program_;
  bool marks_generation_ = false;
};

}  // namespace weft::data
