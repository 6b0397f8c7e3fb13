# one_gpu sees the same images in a folder and in a packed file (hdf5.t has HDF5).

needs: jpeg zip

  $ . "$WEFT"/tests/jsc/insects.sh; insects insects; pack --data_root insects --dset_type packed &> out
  $ losses() { one_gpu --epochs 1 --device cpu --batch-size 2 --data "$1" 2> said | grep ^Epoch; }
  $ losses insects > folder; wc -l < folder; losses packed:insects.packed | diff folder -
  1
