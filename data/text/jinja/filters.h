// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <utility>

#include "data/text/jinja/value.h"

namespace weft::data::jinja {

/// A test of x, perhaps with an argument.
using Test = bool (*)(const Value& x, const Value& argument);
/// A test, and whether it has an argument. Errors: an unknown name.
const std::pair<Test, bool>& test_named(const std::string& name);

using Filter = Value (*)(const Value& x, const Named& arguments);
/// Errors: an unknown name.
Filter filter_named(const std::string& name);

/// The functions that every template can call, by their names.
const std::map<std::string, Value>& global_functions();

}  // namespace weft::data::jinja
