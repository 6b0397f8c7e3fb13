# SPDX-License-Identifier: Apache-2.0
"""The modules of tools/bundle and tools/gpu_check."""
