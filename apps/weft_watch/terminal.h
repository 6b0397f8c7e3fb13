// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/weft_watch/canvas.h"
#include "apps/weft_watch/options.h"

namespace weft::weft_watch {

/// Whether stdout is a terminal.
bool is_terminal();

/// How to draw `runs` runs on stdout: what the options say, else the terminal's width, the locale, NO_COLOR
/// (no-color.org).
Style terminal_style(const Options& options, size_t runs);

}  // namespace weft::weft_watch
