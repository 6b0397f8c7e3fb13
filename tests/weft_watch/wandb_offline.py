#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wandb_offline.py SCRIPT TRAIN_IMAGE: a run of train_image becomes an offline run of W&B, and all its numbers
are in its file. Needs a Python that has the package wandb: WEFT_PYTHON, else python3."""
import glob
import json
import os
import subprocess
import sys
import tempfile

READ = """
import json, sys
from wandb.proto import wandb_internal_pb2

def messages(data):  # records of LevelDB's log: checksum, length (2 bytes), part (0: none, 1: all, 4: the last), in blocks of 32 KiB
    at, message = 7, b""
    while at + 7 <= len(data):
        left, length, part = 32768 - at % 32768, int.from_bytes(data[at + 4:at + 6], "little"), data[at + 6]
        if left < 7 or part == 0:
            at += left
            continue
        message += data[at + 7:at + 7 + length]
        at += 7 + length
        if part in (1, 4):
            yield message
            message = b""

found = {"history": [], "config": {}, "project": "", "name": "", "exit_code": -1, "summary": {}}
for data in messages(open(sys.argv[1], "rb").read()):
    record = wandb_internal_pb2.Record()
    record.ParseFromString(data)
    kind = record.WhichOneof("record_type")
    if kind == "history":
        found["history"].append({(i.key or "/".join(i.nested_key)): json.loads(i.value_json) for i in record.history.item})
    elif kind == "run":
        found["project"], found["name"] = record.run.project, record.run.display_name
        found["config"].update({i.key: json.loads(i.value_json) for i in record.run.config.update})
    elif kind == "exit":
        found["exit_code"] = record.exit.exit_code
    elif kind == "summary":
        found["summary"].update({(i.key or "/".join(i.nested_key)): json.loads(i.value_json) for i in record.summary.update})
print(json.dumps(found))
"""


def main():
    script, train_image = sys.argv[1:]
    python = os.environ.get("WEFT_PYTHON", "python3")
    if subprocess.run([python, "-c", "import wandb"], capture_output=True, check=False).returncode != 0:
        print("NOT TESTED against W&B: install Python's package wandb, or set WEFT_PYTHON to a python3 that has it")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        run, environment = f"{folder}/runs/first", {**os.environ, "HOME": folder, "WANDB_MODE": "offline"}
        subprocess.run([train_image, "--data", "random:96x16x16x3", "--model", "resnet8", "--batch-size", "32", "--epochs", "2", "--lr",
                        "0.05", "--log-interval", "1", "--device", "cpu", "--out", run], check=True, capture_output=True)
        with open(f"{run}/metrics.jsonl", "r+", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
            lines.write('[1]\n{"step": ')
        said = subprocess.run([python, script, run, "--project", "trial", "--dir", folder], check=True, capture_output=True,
                              text=True, env=environment)
        assert f"{len(rows)} lines of" in said.stdout and len(rows) == 10, said
        for line in (11, 12):
            assert f"metrics.jsonl:{line}: no JSON object, left out" in said.stderr, said
        files = glob.glob(f"{folder}/wandb/offline-run-*/run-*.wandb")
        assert len(files) == 1, files
        found = json.loads(subprocess.run([python, "-c", READ, files[0]], check=True, capture_output=True, text=True).stdout)
        assert (found["project"], found["name"], found["exit_code"]) == ("trial", "first", 0), found
        assert found["config"]["model"] == "resnet8" and found["config"]["lr"] == 0.05, found["config"]
        assert len(found["history"]) == len(rows), (len(found["history"]), len(rows))
        for row, line in zip(rows, found["history"]):
            for key, value in row.items():
                if isinstance(value, (int, float)) and key != "time":
                    assert line.get(key, line.get(f"{key}/{row['split']}")) == value, (key, row, line)
            assert f"loss/{row['split']}" in line, line
        assert any("gradient_norm" in line for line in found["history"]), found["history"]
        assert found["summary"]["best_epoch"] > 0, found["summary"]
        # wandb's own list of uploads by `sync`, before its question.
        listed = subprocess.run([python, "-m", "wandb", "sync"], cwd=folder, capture_output=True, text=True, env=environment,
                                check=False)
        assert os.path.basename(files[0]) in listed.stdout + listed.stderr, listed
        missing = subprocess.run([python, script, f"{folder}/none"], capture_output=True, text=True, check=False)
        assert missing.returncode == 1 and missing.stderr == f"wandb_offline: there is no {folder}/none/metrics.jsonl\n", missing
    print("all numbers are in the offline run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
