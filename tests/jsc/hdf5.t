# pack and load_bench with HDF5, as packed.t has it.

needs: jpeg hdf5 zip

  $ . "$WEFT"/tests/jsc/insects.sh; insects insects; pack --dset_type h5 --data_root insects/ 2> said
  folder train: 5 images of varying size, 2 classes
  folder val: 3 images of varying size, 2 classes
  folder test: 2 images of varying size, 2 classes
  wrote insects.h5, … bytes
  elapsed: 00 hours … min … sec
  $ grep -oE '(pack|verify) [a-z]+' said | tr '\n' ','; ls
  pack train,pack val,pack test,verify train,verify val,verify test,insects
  insects.h5
  said
  $ train() { train_image --data "$1" --epochs 1 --batch-size 2 --model resnet8 --image-size 16 --device cpu --lr 0.01 --workers 1 --export "$2".safetensors --out "$2"; }
  $ train folder:insects a > out 2>&1; train hdf5:insects.h5 b 2> said | grep -c '[53] images of varying size, 2 classes'
  2
  $ same a.safetensors b.safetensors
  $ load_bench --dset_type h5 --data_root insects.h5 --batch_size 2 --workers 1 2> said
  Start loading with H5 file
  load +[0-9]+ images/s  \([0-9.]+ s\) (re)
  elapsed: …
  $ load_bench --dset-type h5 -d . --read-only --raw --epochs 3 2> said
  Start loading with H5 file
  read +[0-9]+ images/s +[0-9.]+ MB/s .* (re)
  plain pread …
  [0-9.]+ of the disk's cache (re)
  elapsed: …

one_gpu sees the same images, too.

  $ losses() { one_gpu --epochs 1 --device cpu --batch-size 2 --data "$1" 2> said | grep ^Epoch; }
  $ losses insects > folder; wc -l < folder; losses hdf5:insects.h5 | diff folder -
  1
