# What pack, load_bench, one_gpu and ddp refuse, each in one line.

  $ . "$WEFT"/tests/jsc/insects.sh; pack --data_root none
  pack: error: --data_root: expected a folder of images, got none, which does not exist
  [1]
  $ fails pack --data_root .
  pack: error: --data_root: expected train, val or test in ., got none of them [1]
  $ fails pack --dset_type arrow
  pack: error: --dset_type: unknown value 'arrow'. Known: h5, packed. (pack --help lists the flags) [2]
  $ fails pack --dsettype h5
  pack: error: unknown flag --dsettype. Did you mean --dset_type? (pack --help lists the flags) [2]
  $ insects insects; pack --dset_type packed --data_root insects --out .
  pack: error: --out: expected a file, got the folder .
  [1]
  $ place grey.jpg insects/val/wasps/1.jpg; pack --dset_type packed --data_root insects 2>&1 | grep error
  pack: error: folder: expected in insects/val only classes of the train part, got the new class 'wasps'
  [1]
  $ ls
  insects
  $ fails load_bench --data_root none
  load_bench: error: --data_root: expected images in none, got nothing there [1]
  $ fails load_bench --dset_type h5 -d .
  load_bench: error: --data_root: expected a file *.h5 in ., got none. `pack` writes one [1]
  $ touch a.h5 b.h5; load_bench --dset_type h5 -d .
  load_bench: error: --data_root: expected one file *.h5 in ., got 2, such as ./a.h5 and ./b.h5. Name the file
  [1]
  $ fails load_bench --dset_type packed -d a.h5
  load_bench: error: packed: a.h5: it is an empty file, expected a packed file (it begins with WEFTPACK). Was it copied or downloaded in whole? [1]
  $ fails load_bench --read_only --decode_only
  load_bench: error: --read_only: expected it without --decode_only (load_bench --help lists the flags) [2]
  $ fails load_bench --batch_size 0
  load_bench: error: --batch_size: expected a value at least 1 and at most 1000000000, got 0 (load_bench --help lists the flags) [2]
  $ SLURM_CPUS_PER_TASK=many load_bench
  load_bench: error: SLURM_CPUS_PER_TASK: expected a whole number, got 'many' (load_bench --help lists the flags)
  [2]
  $ fails one_gpu --device cpu
  one_gpu: error: data: expected images in data/hymenoptera_data, got nothing there. `tools/fetch_data hymenoptera data` brings the ants and bees to data/hymenoptera, --data names that or another place [1]
  $ fails ddp --device cpu --data packed:none
  ddp: error: packed: none: expected to open it, got 'No such file or directory' [1]
  $ fails one_gpu --epoch 3
  one_gpu: error: unknown flag --epoch. Did you mean --epochs? (one_gpu --help lists the flags) [2]
  $ fails one_gpu --epochs many
  one_gpu: error: --epochs: expected a whole number, got 'many' (one_gpu --help lists the flags) [2]
  $ mkdir empty; one_gpu --device cpu --data empty
  one_gpu: error: folder: expected train and val in empty, got neither. The layout is DIR/{train,val}/CLASS/*.jpg
  [1]

Their help says what they are for.

  $ pack --help | grep -o "layout of JSC's course"; load_bench --help | grep -o 'how the images are kept'
  layout of JSC's course
  how the images are kept
  $ one_gpu --help | grep -o 'ants from bees'; ddp --help | grep -o 'srun ddp'
  ants from bees
  srun ddp
