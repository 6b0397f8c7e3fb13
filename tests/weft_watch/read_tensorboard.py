# SPDX-License-Identifier: Apache-2.0
"""Starts TensorBoard on a folder of runs and prints as JSON what its HTTP interface says of them.

    read_tensorboard.py FOLDER
"""

import json
import os
import struct
import sys
import time
import urllib.parse
import urllib.request

from tensorboard import program

folder = sys.argv[1]
server = program.TensorBoard()
server.configure(argv=[None, "--logdir", folder, "--port", "0", "--host", "127.0.0.1", "--load_fast", "false"])
url = server.launch()


def get(path, **query):
    with urllib.request.urlopen(url.rstrip("/") + path + "?" + urllib.parse.urlencode(query), timeout=30) as answer:
        return answer.read()


def post(path, body):
    request = urllib.request.Request(
        url.rstrip("/") + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


runs = sum(any("tfevents" in file for file in files) for _, _, files in os.walk(folder))
for _ in range(300):  # it reads in the background
    tags = json.loads(get("/data/plugin/scalars/tags"))
    if len(tags) == runs:
        break
    time.sleep(0.1)
time.sleep(1)  # the last files' ends

out = {"scalars": {}, "images": {}, "histograms": {}, "texts": {}}
for run, names in json.loads(get("/data/plugin/scalars/tags")).items():
    for tag in names:
        points = json.loads(get("/data/plugin/scalars/scalars", run=run, tag=tag))
        out["scalars"].setdefault(run, {})[tag] = [[step, value] for _, step, value in points]
for run, names in json.loads(get("/data/plugin/histograms/tags")).items():
    for tag in names:  # bins: left end, right end, count
        points = json.loads(get("/data/plugin/histograms/histograms", run=run, tag=tag))
        out["histograms"].setdefault(run, {})[tag] = [[step, bins] for _, step, bins in points]
for run, names in json.loads(get("/data/plugin/text/tags")).items():
    for tag in names:  # Markdown became HTML
        points = json.loads(get("/data/plugin/text/text", run=run, tag=tag))
        out["texts"].setdefault(run, {})[tag] = [[point["step"], point["text"]] for point in points]
for run, names in json.loads(get("/data/plugin/images/tags")).items():
    for tag in names:
        listed = json.loads(get("/data/plugin/images/images", run=run, tag=tag, sample=0))
        for image in listed:
            png = get("/data/plugin/images/individualImage?" + image["query"])
            image["size"] = struct.unpack(">II", png[16:24]) if png.startswith(b"\x89PNG") else None
        out["images"].setdefault(run, {})[tag] = [[image["step"], image["size"]] for image in listed]

experiment = post("/data/plugin/hparams/experiment", {"experimentName": ""})
out["hparams"] = sorted(info["name"] for info in experiment.get("hparamInfos", []))
request = {
    "experimentName": "",
    "allowedStatuses": ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING", "STATUS_UNKNOWN"],
    "colParams": [{"hparam": name, "includeInResult": True} for name in out["hparams"]],
    "startIndex": 0,
    "sliceSize": 100,
}
groups = post("/data/plugin/hparams/session_groups", request)
out["sessions"] = {
    session["name"]: [session["status"], group["hparams"]] for group in groups["sessionGroups"] for session in group["sessions"]
}
print(json.dumps(out))
