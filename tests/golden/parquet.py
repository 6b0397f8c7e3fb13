#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""parquet.py FOLDER: writes wells.parquet with pyarrow, for tests/data/table.cpp: three row groups, a column of each type."""
import datetime
import decimal
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

NAN = float("nan")
wells = pa.table({
    "id": pa.array([1, 2, 3, 4, 5], pa.int64()),
    "serial": pa.array([2**53 + 1, -1, 0, None, 7], pa.int64()),
    "depth": pa.array([10.5, -2e300, 0.1, None, NAN], pa.float64()),
    "porosity": pa.array([0.25, None, 0.5, 0.125, 1.0], pa.float32()),
    "half": pa.array([1.5, 2.5, -0.5, 0.0, 65504.0], pa.float16()),
    "small": pa.array([255, 0, None, 1, 2], pa.uint8()),
    "infinite": pa.array([1.0, 2.0, float("inf"), 4.0, 5.0], pa.float32()),
    "price": pa.array([decimal.Decimal(text) for text in "1.25 -3.50 0.00 99.99 4.00".split()], pa.decimal128(9, 2)),
    "wet": pa.array([True, False, None, True, True], pa.bool_()),
    "rock": pa.array(["sand", "lime", None, "sand", "clay"]).dictionary_encode(),
    "well": pa.array(["A, north", "B", None, "", "Café"], pa.string()),
    "day": pa.array([datetime.date(2026, 1, day) for day in range(1, 6)], pa.date32()),
    "layers": pa.array([[1, 2], [], None, [3], [4]], pa.list_(pa.int64())),
    "nothing": pa.nulls(5),
})
parquet.write_table(wells, Path(sys.argv[1]) / "wells.parquet", row_group_size=2, compression="zstd")
parquet.write_table(wells.slice(0, 0), Path(sys.argv[1]) / "empty.parquet")
