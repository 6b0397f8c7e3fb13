# SPDX-License-Identifier: Apache-2.0
"""What tools/bundle and tools/gpu_check are made of."""
