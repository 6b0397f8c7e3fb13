// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that a training program needs. Include this one header and link weft::weft.
