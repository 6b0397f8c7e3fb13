#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""play.py ROOT FOLDER… [--table FILE]: plays the pages of the workflows, and docs/clusters.md, as a new user would: every command, from the first to the
last, each page in an empty folder. FOLDERs, with the installed programs and scripts, and tools/ are in PATH; ROOT is a clone of the sources.

A command runs as it is written, or with the change below, which says why: less work for a laptop, two ranks on one node for two nodes, practice data
for downloads. What needs a site runs elsewhere or not at all, and the table says where. Exits with 1 if a command ends otherwise than it should, does not print what the
page says, or if a change is for a command that is on no page. Writes the table as Markdown."""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
from commands import rows_of  # noqa: E402

OTHERS = {"mpirun", "srun", "sbatch", "cd", "export", "mv", "source", "exit", "squeue", "sinfo", "tail", "tar", "rsync", "salloc", "module", "cmake",
          "shifterimg", "apptainer", "docker", "buildah", "spack", "ssh", "tensorboard"}
PAGES = ["docs/workflows/vista.md", "docs/workflows/nersc.md", "docs/workflows/nersc_vit.md", "docs/workflows/jsc.md", "docs/workflows/ml_dist.md",
         "docs/workflows/oscer.md", "docs/clusters.md"]


class Change(NamedTuple):
    why: str = ""
    before: str = ""  # what a reader has, or does first
    run: str | None = ""  # instead of the command; None: nothing
    prints: str = ""  # a pattern
    code: int = 0


def site(why):
    return Change(why=why, run=None)


MPI = ("ppr:1:node", "ppr:2:node --oversubscribe")  # one node
TINY = "--data folder:insects --model vit_tiny4 --weights random --precision f32 --workers 1"
NETWORK = "no network: a test fetches from a local server (`ctest -R fetch_data`)"
# Per page: the command's beginning -> its replacement here.
CHANGES = {
    "vista.md": {
        "weft-info": Change("no GPU", code=1, prints="GPU usable: no"),
        "single_gpu 50 10": Change(prints=r"\[GPU0\] Epoch 40 \| Batchsize: 32 \| Steps: 64\n(.*\n)?Epoch 40 \| Training checkpoint saved at checkpoint\.pt"),
        "single_gpu 50 10 --batch_size 64": Change(prints=r"\[GPU0\] Epoch 49 \| Batchsize: 64 \| Steps: 32"),
        "mpirun -np 2 --map-by ppr:1:node multinode 50 10": Change("one node", prints=r"\[GPU1\] Epoch 40 \| Batchsize: 32 \| Steps: 32"),
        "mpirun -np 2 --map-by ppr:1:node run.sh": Change("one node", before="rm snapshot.pt", prints="Epoch 40 \\| Training snapshot saved at snapshot.pt"),
        "weft-run --nproc_per_node 4 multinode 50 10": Change(before="rm snapshot.pt", prints=r"\[GPU3\] Epoch 49 "),
        "mpirun -np 2 --map-by ppr:1:node multinode.sh --data": Change(
            "one node, practice data, small model", prints="'train_runtime'", before="rm -r test-trainer multi_config.yaml; mkdir glue models; "
            "mv mrpc glue; mv bert-base-uncased models; export HOSTS='localhost localhost'"),
        "mpirun -np 2 --map-by ppr:1:node multinode.sh": Change(
            "one node, practice data, small model", prints="Training command: weft-run(.*\n)*.*'train_runtime'", before="practice_data texts mrpc; "
            "finetune --data mrpc --model bert_tiny --max-steps 1 --out tiny || true; mv tiny/checkpoint-1 bert-base-uncased; "
            "export HOSTS='localhost localhost'"),
        "weft-run --config_file": Change("both machines are this one", before="rm -r test-trainer", prints="'train_runtime'", run="""
            ranks=(); for rank in 1 0; do COMMAND --data glue/mrpc --weights models/bert-base-uncased & ranks+=($!); done; wait ${ranks[0]} && wait ${ranks[1]}"""),
        "finetune --machine_rank 1": Change("both machines are this one", before="rm -r test-trainer", prints="'train_runtime'", run="""
            ranks=(); for rank in 1 0; do COMMAND --data glue/mrpc --weights models/bert-base-uncased & ranks+=($!); done; wait ${ranks[0]} && wait ${ranks[1]}"""),
    },
    "nersc.md": {
        "cd apps/nersc": Change(before="cp -r $WEFT/apps ."),
        "train_single_gpu": Change("in default.yaml two epochs of 16 x 16", before="sed -i 's/max_epochs: 25/max_epochs: 2/; s/^  depth: 5/&\\n  img_size: 16/' configs/default.yaml",
                                   prints="Time taken for epoch 2 is .*; with .* in tr/val\nLoss = .*, Val loss = .*\nTraining complete"),  # fmt: skip
        "weft-run --nproc_per_node 4 train_multi_gpu": Change("the same", prints="running on rank 3 with world size 4"),
        "export MASTER_ADDR=$(hostname); srun": site("one-node Slurm: `ctest -R nersc.batch_script`"),
        "sbatch": site("one-node Slurm: `ctest -R nersc.batch_script`"),
    },
    "nersc_vit.md": {
        "train_vit": Change("--num_iters 20", run="COMMAND --num_iters 20", prints="Avg val loss=(.*\n)*.*DONE ---- rank 0"),
        "weft-run": Change("--num_iters 20", run="COMMAND --num_iters 20", prints="DONE ---- rank 3"),
        "sbatch": site("one-node Slurm: `ctest -R slurm.train_vit`"),
    },
    "jsc.md": {
        "tools/fetch_data": Change(NETWORK + "; practice data", run="practice_data insects data/hymenoptera"),
        "one_gpu --data": Change("one epoch of practice data", run="COMMAND --epochs 1 --batch-size 8", prints="Epoch 0: train_cross_entropy="),
        "one_gpu": Change("one epoch of practice data", run="COMMAND --epochs 1 --batch-size 8", prints="Epoch 0: train_cross_entropy=.*val_accuracy=.*\nelapsed: 00 hours 00 min"),
        "srun -n 4 ddp": site("one-node Slurm: `ctest -R slurm.jsc`"),
        "sbatch": site("one-node Slurm: `ctest -R slurm.jsc`"),
        "train_image": Change("one step", run="COMMAND --max-steps 1 --batch-size 8 --model resnet8 --image-size 64 --out one_step"),
        "load_bench --dset_type": Change("2 workers, practice data", prints="images/s", run="for kind in fs h5 packed; do load_bench --dset_type $kind "
                                         "--data_root data/hymenoptera_data$([ $kind = fs ] || echo .$kind) --batch_size 16 --workers 2 --epochs 1 --shuffle || exit; done"),
        "load_bench … --read_only": Change("the same", prints="images/s", run="for stage in --read_only --decode_only; do load_bench --dset_type packed "
                                           "--data_root data/hymenoptera_data.packed --batch_size 16 --workers 2 $stage || exit; done"),
        "load_bench … --raw": Change("of what is read: JPEG's decoder has no work in practice images, which are PNG", prints="images/s", run="load_bench --dset_type packed "
                                     "--data_root data/hymenoptera_data.packed --batch_size 16 --workers 2 --raw --read_only"),
    },
    "ml_dist.md": {
        "mnist": Change("one epoch of practice data", before="practice_data mnist data", run="COMMAND --epochs 1", prints="Test set: Average loss: "),
        "weft-run": Change("one epoch of practice data", run="COMMAND --epochs 1", prints=r"Train Epoch: 1 \[0/512 \(0%\)\]\tLoss: [0-9.]+ \n"),
        "mpirun -np $SLURM_NTASKS": Change("one epoch of practice data", before="export SLURM_NTASKS=2", run="COMMAND --epochs 1", prints=r"Accuracy: [0-9.]+%\n"),
        "mpirun -np 2 weft-run": Change("both nodes are this one, two ranks each; one epoch", run="COMMAND --epochs 1", prints="Test set: Average loss: "),
        "sbatch": site("one-node Slurm: `ctest -R ml_dist.jobs`"),
    },
    "oscer.md": {
        "tools/fetch_data": Change(NETWORK + "; practice data", run="practice_data insects insects"),
        "tools/fetch_weights": site(NETWORK),
        "ouai_demo": Change("practice data, small model", run=f"COMMAND {TINY} -e 1 -b 8", prints=r"0 linear probe\n(.*\n)*\{'validation accuracy': tensor\("),
        "weft-run": Change("practice data, small model", run=f"COMMAND {TINY} -e 1 -b 8 --min-num-params 100000 --out two", prints="1 finetuning"),
        "sbatch": site("one-node Slurm: `ctest -R slurm.oscer`"),
    },
    "clusters.md": {
        "tools/install": site("builds Weft: `ctest -R kit.install` and `apps/container/build.sh` (`ctest -R kit.image`)"),
        "WEFT_SITE=perlmutter sbatch": site("one-node Slurm: `ctest -R slurm.kit`"),
        "tar -xf weft-": site("what this was played with, or `ctest -R kit.prebuilt`"),
        "tools/fetch": site(NETWORK),
        "rsync": site("two machines"),
        "source apps/slurm/sites/generic.sh": Change(before="ln -s $WEFT/apps apps; export SCRATCH=$PWD"),
        "weft-info": Change("no GPU", code=1, prints="GPU usable: no"),
        "sbatch": site("one-node Slurm: `ctest -R slurm.walk`"),
        "squeue": site("one-node Slurm: `ctest -R slurm.walk`"),
        "sinfo": site("one-node Slurm: `ctest -R slurm.walk`"),
        "tail": site("one-node Slurm: `ctest -R slurm.walk`"),
        "weft-watch $SCRATCH/runs --follow": Change(prints="wrote curves.html: 1 run"),
        "tensorboard": site("PyPI's program; `ctest -R train.*Event` reads the files"),
        "ssh": site("two machines"),
        "module load": site("the site's modules"),
        "cmake -S": site("the site's modules"),
        "shifterimg": site("Shifter"),
        "WEFT_CONTAINER=": site("one-node Slurm, with a container that runs its command: `ctest -R slurm.kit`"),
        "apptainer build": site("no apptainer; its steps are the Dockerfile's (`ctest -R kit.containers`)"),
        "docker build": site("`ctest -R kit.image`"),
        "spack": site("no Spack; `ctest -R kit.spack` reads the recipe"),
    },
}
# In any command: what stands for a site's names and sizes.
REWRITES = [MPI, ("$SLURM_NTASKS --bind-to none", "$SLURM_NTASKS --oversubscribe --bind-to none"), ("mpirun -np 2 weft-run", "mpirun -np 2 --oversubscribe weft-run"),
            ("gpu1:29401", "localhost:29401"), ("--nnodes 2 --nproc_per_node 4", "--nnodes 2 --nproc_per_node 2"), ("machine_rank=0", "machine_rank=$rank"),
            ("machine_rank 1", "machine_rank $rank"), ("ip=HOST", "ip=localhost"), ("ip gpu1", "ip localhost"), (" …", "")]


def commands_of(page, programs):
    for line, row in sorted(rows_of(page.read_text(encoding="utf-8"))):
        row = re.sub(r"\s+#\s.*", "", " ".join(row.replace("\0", " ").split())).removeprefix("$ ")
        first = next((word for word in row.split() if "=" not in word or word.startswith("-")), "")
        if first in OTHERS or first in programs or first.startswith("tools/"):
            yield f"{page.name}:{line}", row


class Player:
    """One page's shell: its folder and its exported variables go on from one command to the next."""

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        (folder / "shell").mkdir()
        (folder / "work").mkdir()
        (folder / "shell/folder").write_text(str(folder / "work"))
        (folder / "shell/variables").write_text("")

    def run(self, command):
        script = f"""cd "$(cat {self.folder}/shell/folder)"; . {self.folder}/shell/variables
            leave() {{ code=$?; pwd > {self.folder}/shell/folder; export -p > {self.folder}/shell/variables; exit $code; }}
            trap leave EXIT
            {command}"""
        return subprocess.run(["bash", "-c", script], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)


def play(page, programs, folder, environment, used):
    """Yields (where, command, outcome, what is wrong) of each command of a page."""
    changes, player = CHANGES.get(page.name, {}), Player(folder, environment)
    for where, command in commands_of(page, programs):
        key = max((key for key in changes if command.startswith(key)), key=len, default=None)
        change = changes.get(key, Change())
        used.add((page.name, key))
        if change.run is None:
            yield where, command, f"needs a site: {change.why}", ""
            continue
        if change.before:
            player.run(change.before)
        ran = (change.run or "COMMAND").replace("COMMAND", command)
        for text, other in REWRITES:
            ran = ran.replace(text, other)
        begin = time.monotonic()
        done = player.run(ran)
        fault = ""
        if done.returncode != change.code:
            fault = f"expected exit code {change.code}, got {done.returncode}"
        elif not re.search(change.prints, done.stdout):
            fault = f"expected it to print {change.prints}"
        if fault:
            outcome = "WRONG"
        elif command.split()[0] not in ran:  # something else ran in its place
            outcome = f"needs a site: {change.why}"
        else:
            outcome = "right" + (f" ({change.why})" if change.why else "") + f", {time.monotonic() - begin:.1f} s"
        yield where, command, outcome, f"{where}: {ran}\n{done.stdout[-4000:]}\n{fault}" if fault else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    folders = [*(folder.resolve() for folder in arguments.folders), root / "tools"]
    programs = {path.name for folder in folders for path in folder.iterdir() if os.access(path, os.X_OK) and path.is_file()}
    environment = {**os.environ, "PATH": ":".join(map(str, folders)) + ":" + os.environ["PATH"], "WEFT": str(root), "CUDA_VISIBLE_DEVICES": "",
                   "OMP_WAIT_POLICY": "passive", "LC_ALL": "C.UTF-8"}
    rows, faults, used = [], [], set()
    for name in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            for *row, fault in play(root / name, programs, Path(folder), environment, used):
                print(*row, sep=" | ", flush=True)
                rows.append(row)
                if fault:
                    faults.append(fault)
    faults += [f"{page}: no command begins with '{key}'" for page, changes in CHANGES.items() for key in changes if (page, key) not in used]
    kinds = Counter(re.match(r"\w+( a site)?", outcome)[0] for _, _, outcome in rows)
    summary = f"{len(rows)} commands: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    if arguments.table:
        cells = [" | ".join([where, "`` " + command.replace("|", "\\|") + " ``", outcome]) for where, command, outcome in rows]
        arguments.table.write_text(f"{summary}.\n\n| line | command | outcome |\n| --- | --- | --- |\n" + "".join(f"| {cell} |\n" for cell in cells))
    print(summary, *faults, sep="\n\n")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
