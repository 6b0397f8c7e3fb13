// SPDX-License-Identifier: Apache-2.0
#pragma once
// A header of the program's own: Weft's headers must not take it for theirs.
inline constexpr int kOwnTensor = 3;
