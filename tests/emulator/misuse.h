// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Launches a kernel of misuse_hopper.cu; false when it has none of this name.
bool launch_hopper(const char* name, bool right, int* data);
