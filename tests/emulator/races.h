// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Launches a kernel of races_hopper.cu; false: no such name.
bool launch_hopper(const char* name, bool right, int* data);
