# SPDX-License-Identifier: Apache-2.0
"""The suites by name."""

from pytorch_cases import Cases, suite_cpu
from pytorch_gpu_cases import suite_gpu
from pytorch_ops import suite_ops

SUITES = {"cpu": suite_cpu, "gpu": suite_gpu, "ops": suite_ops}


def suite(name, device, tiny):
    cases = Cases(device, tiny)
    SUITES[name](cases)
    return cases
