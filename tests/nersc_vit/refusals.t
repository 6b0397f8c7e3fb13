# What train_vit and make_fields refuse, each in one line.

needs: hdf5 yaml

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41 > out; cd fields
  $ train() { train_vit --device cpu --yaml_config ViT.yaml "$@"; }
  $ fails train --row_parallel_size 3
  train_vit: error: --row_parallel_size: 4 heads (num_heads) do not divide by 3 (train_vit --help lists the flags) [2]
  $ fails train --row_parallel_size 2
  train_vit: error: --row_parallel_size: 2 does not divide 1 rank (train_vit --help lists the flags) [2]
  $ fails train --pipeline_chunks 2
  train_vit: error: --pipeline_chunks: expected --pipeline_parallel_size above 1, got 1: there is no pipeline (train_vit --help lists the flags) [2]
  $ fails train --sequence_parallel
  train_vit: error: --sequence_parallel: expected --row_parallel_size above 1, got 1 (train_vit --help lists the flags) [2]
  $ fails train --col_parallel_size 2
  train_vit: error: --col_parallel_size: expected 1, got 2: layers are divided over --row_parallel_size alone (train_vit --help lists the flags) [2]
  $ fails train --amp_mode fp8
  train_vit: error: --amp_mode: unknown value 'fp8'. Known: none, fp16, bf16. (train_vit --help lists the flags) [2]
  $ fails train --num_iter 3
  train_vit: error: unknown flag --num_iter. Did you mean --num_iters? (train_vit --help lists the flags) [2]
  $ fails train --graph on
  train_vit: error: --graph on: expected --device cuda, got cpu, which runs each op at once (train_vit --help lists the flags) [2]
  $ fails train --graph on --amp_mode fp16
  train_vit: error: --graph on: expected --amp_mode none or bf16, got fp16, whose loss scale the host decides (train_vit --help lists the flags) [2]
  $ fails train --config nowhere
  train_vit: error: ViT.yaml: expected a section 'nowhere', got none. Known: base, short. (train_vit --help lists the flags) [2]
  $ fails train --yaml_config /nowhere/ViT.yaml
  train_vit: error: /nowhere/ViT.yaml: expected a YAML file, got none there (train_vit --help lists the flags) [2]
  $ fails train --local_batch_size 81 --dry-run
  train_vit: error: loader: expected a batch size of at most 80, the number of samples of this rank, got 81 (FOLDER/fields/train: 2 files, 80 pairs of 4 x 16 x 32, 1 ranks) [1]

A configuration's fault has its file and line, where a line has it.

  $ changed() { sed "$1" ViT.yaml > changed.yaml; cmp -s ViT.yaml changed.yaml && echo "$1 changes nothing"; train --yaml_config changed.yaml; }
  $ fails changed 's/  depth: 2/  dephts: 2/'
  train_vit: error: changed.yaml:3: unknown key 'dephts'. Did you mean 'depth'? (train_vit --help lists the flags) [2]
  $ fails changed 's/  depth: 2/  depth: two/'
  train_vit: error: changed.yaml:3: depth: expected a whole number, got 'two' (train_vit --help lists the flags) [2]
  $ changed 's/  depth: 2/&\n  dropout: 0.1/'
  train_vit: error: changed.yaml:4: dropout: expected 0, got 0.1: this model has none (train_vit --help lists the flags)
  [2]
  $ fails changed 's/img_size: .*/img_size: [16]/'
  train_vit: error: changed.yaml:6: img_size: expected two sizes such as [360, 720] (train_vit --help lists the flags) [2]
  $ fails changed 's/img_size: .*/img_size: [12, 32]/'
  train_vit: error: ForecastVit: expected fields whose sides are multiples of the patch, got 12 x 32 and 8 [1]
  $ fails changed 's/img_size: .*/img_size: [24, 32]/'
  train_vit: error: fields: FOLDER/fields/train/1979.h5: expected at least 4 x 24 x 32 values (channels, rows, columns), got 4 x 16 x 32 [1]
  $ fails changed "s,fields/train',fields/rain',"
  train_vit: error: fields: expected a folder of HDF5 files at FOLDER/fields/rain, got: No such file or directory [1]
  $ fails changed 's/global_stds.npy/global_std.npy/'
  train_vit: error: npy: FOLDER/fields/stats/global_std.npy: expected to open it, got 'No such file or directory' [1]
  $ changed "s,expdir: ',&/dev/null,"
  train_vit: error: expdir: cannot create /dev/nullFOLDER/fields/logs/base/1GPU/00: Not a directory
  [1]
  $ fails changed 's/  train_data_path/  inf_data_path/'
  train_vit: error: changed.yaml: section base: train_data_path is missing (train_vit --help lists the flags) [2]

Weather data have NaN where nothing is measured: it is named with its file. The last time is a target only.

  $ nan_in() {  # nan_in FILE: of 9 times of 4 channels of 16 x 32, at the file's end
  >   make_fields --channels 4 --rows 16 --columns 32 --times 9 --years 2 --out nan > out
  >   printf '\0\0\300\177' | dd of=nan/$1 bs=1 conv=notrunc status=none seek=$(($(stat -c %s nan/$1) - 4 * (9 * 4 * 16 * 32 - (((8 * 4 + 2) * 16 + 5) * 32 + 7))))
  >   train_vit --device cpu --local_batch_size 2 --yaml_config nan/ViT.yaml --num_iters 4 --run_num "${1%/*}" 2>&1 > out | grep error
  > }
  $ fails nan_in train/1979.h5
  train_vit: error: loss is not finite (nan) at epoch 1, step 3: the data are not finite: nan in 'target' of sample 7 (FOLDER/fields/nan/train/1979.h5, time 8, channel 2, row 5, column 7). Correct them, or leave such samples out. The last good checkpoint is kept [1]
  $ fails nan_in valid/1980.h5
  train_vit: error: validation: the data are not finite: nan in 'target' of sample 7 (FOLDER/fields/nan/valid/1980.h5, time 8, channel 2, row 5, column 7). Correct them, or leave such samples out [1]

Sections of the shipped configuration name files of a container: each ends at the first that is missing, and not before.

  $ for section in base short short_opt opt bs{16,32,64,128,256,512,1024,2048}_opt mp mp_bs16 mp_bs32 mp_patch4 short_mp; do
  >   train_vit --device cpu --dry-run --yaml_config "$WEFT"/apps/nersc_vit/config/ViT.yaml --config $section 2>&1 | grep -o '/data/stats/global_means.npy'
  > done | uniq -c
       17 /data/stats/global_means.npy
  [1]

make_fields needs a year for validation, and a folder to write to.

  $ fails make_fields --years 1
  make_fields: error: --years: expected a value at least 2 and at most 1000, got 1 (make_fields --help lists the flags) [2]
  $ fails make_fields --out /dev/null/fields
  make_fields: error: --out: cannot make the folder /dev/null/fields/train: Not a directory [1]

`--help` names what a newcomer needs.

  $ train_vit --help > help; for flag in run_num yaml_config config amp_mode local_batch_size num_iters num_data_workers bucket_cap_mb noddp \
  >   row_parallel_size resume recompute parallel fsdp-offload fsdp-checkpoints grad-compression; do grep -q -e --$flag help || echo "no --$flag"; done
