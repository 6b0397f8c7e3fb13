# The OUAI demo on two ranks: by the workflow's launch line, and by its batch script.

needs: ranks

  $ small='--weights random --model vit_tiny4 --data random:40x32x32x3 --precision f32 --workers 1 --device cpu'
  $ weft-run --nnodes 1 --nproc_per_node 2 --rdzv_id 7 --rdzv_backend c10d --rdzv_endpoint "127.0.0.1:$(free_port)" \
  >   ouai_demo -e 1 -b 8 -lr 1e-3 $small --min-num-params 100000 --out run 2> said > out && grep '^[01]' out | sort
  0 epoch
  0 epoch
  0 finetuning
  0 linear probe
  1 epoch
  1 epoch
  1 finetuning
  1 linear probe
  $ grep -c '^{' out
  2
  $ near 1e-4 <(of 'run/OUAI Demo/metrics.jsonl' 'validation accuracy') <(grep -o 'tensor(.*' out | numbers)

The batch script meets at the head node's first IPv4 address. Slurm's two programs are played on one machine; srun starts a task for each of two nodes.

  $ mkdir slurm; cat > slurm/scontrol <<'END'
  > #!/bin/sh
  > [ "$1 $2 $3" = 'show hostnames localhost' ] && echo localhost
  > END
  $ cat > slurm/srun <<'END'
  > #!/bin/bash
  > [[ $1 = --nodes=1 ]] && { [[ $3$4 = -wlocalhost ]] && echo ::1 fe80::1%eth0 127.0.0.1 spare; exit; }
  > "$@" & first=$!
  > "$@" & second=$!
  > wait $first && wait $second
  > END
  $ chmod +x slurm/*; SLURM_JOB_NODELIST=localhost SLURM_JOB_NUM_NODES=2 SLURM_JOB_ID=11 GPUS_PER_NODE=1 WEFT_START_TIMEOUT=60 PATH=$PWD/slurm:$PATH \
  >   timeout --foreground 120 bash "$WEFT"/apps/oscer/submit.sh -e 1 -b 8 -lr 1e-3 $small --phases probe --out batch 2> said > out && grep -E '^[N{]|probe' out | sort
  0 linear probe
  1 linear probe
  Node IP: 127.0.0.1
  {'validation accuracy': tensor(…)}
  $ grep -oE -- '--(partition=gpu|nodes=2|ntasks=2|cpus-per-task=32|gres=gpu:2|mem=64G|time=24:00:00)|-e 5 -b 256 -lr 1e-3|:64425' "$WEFT"/apps/oscer/submit.sh
  --partition=gpu
  --nodes=2
  --ntasks=2
  --cpus-per-task=32
  --gres=gpu:2
  --mem=64G
  --time=24:00:00
  -e 5 -b 256 -lr 1e-3
  :64425
