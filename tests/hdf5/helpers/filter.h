// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Filter numbers from the range that HDF5 leaves to tests (256 to 511).
constexpr int kAddsOne = 311, kAddsOneUnlinked = 312;
