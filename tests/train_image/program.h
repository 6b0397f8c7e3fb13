// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "tests/support/shell.h"
#include "tests/support/temporary_folder.h"

namespace weft::tests {

inline Outcome train_image(const std::string& arguments) { return shell(std::string(TRAIN_IMAGE) + ' ' + arguments); }

}  // namespace weft::tests
