# Features in a file: --cache-features FILE.safetensors.

  $ probe() { linear_probe --data random:44x32x32x3 --model vit_tiny4 --workers 1 --precision f32 -b 16 -e 1 -lr 1e-3 --phases probe --overwrite "$@" 2>&1; }
  $ kept() { probe --cache-features kept.safetensors "$@" | grep '^features\|error'; }

A file changes not a bit, and is read by the next run, which leaves it alone.

  $ probe --cache-features off --out off > log; kept --out first
  features kept.safetensors: computed
  $ cp kept.safetensors before; kept --out second
  features kept.safetensors: read, 44 + 44 images
  $ same before kept.safetensors; same off/probe.safetensors first/probe.safetensors; same off/probe.safetensors second/probe.safetensors

They are computed anew when they would be others.

  $ for flags in "" "--resize 40" "--resize 40 --interpolation bicubic --precision bf16" "--data random:40x32x32x3"; do
  >   kept --seed 7 $flags --out with; probe --seed 7 $flags --cache-features off --out without > log; same with/probe.safetensors without/probe.safetensors
  > done
  features kept.safetensors: recomputed, because these changed since they were stored: the weights
  features kept.safetensors: recomputed, because these changed since they were stored: the preprocessing
  features kept.safetensors: recomputed, because these changed since they were stored: the preprocessing, the precision
  features kept.safetensors: recomputed, because these changed since they were stored: the images, the preprocessing, the precision

A file of somebody else is left alone; a damaged one is named.

  $ cp kept.safetensors whole; echo mine > kept.safetensors; kept --out run; cat kept.safetensors
  linear_probe: error: --cache-features kept.safetensors: expected features that linear_probe wrote, got another file or a damaged one, which is left as it is (checkpoint: kept.safetensors: expected a checkpoint, got another format). Remove it, or give another name
  mine
  $ cp whole kept.safetensors; printf x | dd of=kept.safetensors bs=1 seek=5000 conv=notrunc 2> log; cmp -s whole kept.safetensors || kept --out run
  linear_probe: error: --cache-features kept.safetensors: expected features that linear_probe wrote, got another file or a damaged one, which is left as it is (checkpoint: kept.safetensors: damaged: its bytes do not fit the checksum at its end. Resume from another checkpoint). Remove it, or give another name
  [1]
  $ cp whole kept.safetensors; truncate -s 5000 kept.safetensors; kept --out run
  linear_probe: error: --cache-features kept.safetensors: expected features that linear_probe wrote, got another file or a damaged one, which is left as it is (checkpoint: kept.safetensors: damaged or cut short: it does not end with a seal. Resume from another checkpoint). Remove it, or give another name
  [1]

Places that cannot be written.

  $ probe --cache-features /nowhere/kept.safetensors --out run | grep error
  linear_probe: error: --cache-features: expected an existing folder for /nowhere/kept.safetensors, got none at /nowhere
  [1]
  $ probe --cache-features yes --out run | grep error; echo ${PIPESTATUS[0]}
  linear_probe: error: --cache-features: expected auto, on, off or a file that ends in .safetensors, got 'yes' (linear_probe --help lists the flags)
  2

A full disk does not end the run, which has its features nevertheless. A limit on file sizes stands for it.

  $ rm kept.safetensors; (trap '' XFSZ; ulimit -f 100; kept --data random:200x32x32x3 --out full); ls full/probe.safetensors kept.safetensors
  features kept.safetensors: computed
  features kept.safetensors: not kept: checkpoint: expected to write kept.safetensors, got 'File too large'. Raise the limit on file sizes (ulimit -f).
  ls: cannot access 'kept.safetensors': No such file or directory
  full/probe.safetensors
  [2]
