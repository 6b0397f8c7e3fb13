# linear_probe on several ranks trains what one process trains.

needs: ranks

  $ flags="--data random:44x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -e 2 -lr 1e-3"
  $ on() { ranks "$1" linear_probe "${@:2}"; }

Each rank prints its lines. Adam moves a weight by about the rate in each of 6 steps; a gradient of about 0 may go either way.

  $ linear_probe $flags -b 16 --out one > log 2>&1
  $ on 2 $flags -b 8 --min-num-params 100000 --out fsdp 2> log | grep '^[01]\|^{' | sort
  0 epoch
  0 epoch
  0 epoch
  0 epoch
  0 finetuning
  0 linear probe
  1 epoch
  1 epoch
  1 epoch
  1 epoch
  1 finetuning
  1 linear probe
  \{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\} (re)
  \{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\} (re)
  \{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\} (re)
  \{'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)\} (re)
  $ on 2 $flags -b 8 --parallel ddp --out ddp > log 2>&1
  $ for run in fsdp ddp; do apart mean 1e-5 $run/probe.safetensors one/probe.safetensors weight; done

37 images in steps of 12: in the last one, two of three ranks have none. A repeated image would move the mean of losses of order 5 by 1e-2.

  $ three="--data random:37x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -e 1 -lr 1e-3"
  $ loss() { jq .finetune_train_loss $1/summary.json; }
  $ linear_probe $three -b 12 --out one3 > log 2>&1 && on 3 $three -b 4 --parallel ddp --out ddp3 > log 2>&1 && on 3 $three -b 4 --parallel fsdp --min-num-params 100000 --out fsdp3 > log 2>&1
  $ for run in ddp3 fsdp3; do jq -n "$(loss $run) - $(loss one3) | fabs < 1e-4"; done
  true
  true

Kept features change not a bit on two ranks, either.

  $ for kept in on off; do on 2 $flags -b 8 -e 1 --checkpointing block --cache-features $kept --out $kept > log 2>&1; done; same on/finetuned.safetensors off/finetuned.safetensors

Sharded, in the precision of the workflow.

  $ on 2 --data random:16x32x32x3 --model vit_tiny4 -e 1 -b 8 --workers 1 --min-num-params 100000 --out low 2> log | grep -c accuracy
  2

Features that two ranks keep are read by two and by one. A file of somebody else ends all.

  $ kept="--data random:44x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -e 1 -lr 1e-3 --phases probe --overwrite --cache-features kept.safetensors"
  $ on 2 $kept -b 8 --parallel ddp --out written > log 2>&1 && on 2 $kept -b 8 --parallel ddp --out read 2>&1 | grep '^features'; same written/probe.safetensors read/probe.safetensors
  features kept.safetensors: read, 44 + 44 images
  $ linear_probe $kept -b 16 --out alone 2>&1 | grep '^features'
  features kept.safetensors: read, 44 + 44 images
  $ echo mine > kept.safetensors; on 2 $kept -b 8 --out refused > log 2>&1
  [1]
  $ grep -o 'error: .*expected features.*' log | sort -u; rm kept.safetensors
  error: --cache-features kept.safetensors: expected features that linear_probe wrote, got another file or a damaged one, which is left as it is (checkpoint: kept.safetensors: expected a checkpoint, got another format). Remove it, or give another name

The logistic regression is the same on two ranks.

  $ logreg="$kept --eval logreg --logreg-values 3 --logreg-iterations 40"
  $ linear_probe $logreg -b 16 --out logreg1 > log 2>&1 && on 2 $logreg -b 8 --out logreg2 > log 2>&1
  $ for n in 1 2; do jq -c '[.logreg_accuracy, .logreg_c] | select(all(. != null))' logreg$n/summary.json; done | sort -u | wc -l
  1

Ranks with other images are named.

  $ ranks 2 sh -c "linear_probe --data random:\$((44 + RANK))x32x32x3 --model vit_tiny4 --workers 1 --out other" > log 2>&1
  [1]
  $ grep -o 'data: the set .*' log | sort -u
  data: the set is not the same on all ranks: at entry 1 rank 0 has '44 images for training', rank 1 has '45 images for training'. All ranks must read the same images
