# SPDX-License-Identifier: Apache-2.0
# A Slurm of one node on this machine, in a folder of its own: controller, node daemon, munge. Source it; needs root, slurm-wlm
# and munge.
#   enter_cluster    the node is idle when it returns: SLURM_CONF and the cluster's folder $cluster are set, and all is ended
#                    when the script ends. Where there can be no Slurm the script says so and ends with 77.
#   wake_requeued JOB  lets a job that rests after a requeue start now; nothing for one that does not rest
#   wait_for_job JOB   until it has ended, for at most 120 s: $job_state; fails where that is not COMPLETED
#   sbatch_wait [NAME=VALUE…] WORDS…   `sbatch --wait WORDS` with these variables; that one looks after 2, 10 and 42 s only

export PATH=$PATH:/usr/sbin:/sbin

cluster_lacks() {  # what is missing; nothing when all is there
  for program in slurmctld slurmd srun sbatch munged mungekey; do
    command -v "$program" >/dev/null || { echo "$program (Debian: slurm-wlm munge)"; return; }
  done
  [[ $(id -u) -eq 0 ]] || echo "root"
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start_cluster() {
  local dir=$1 host cores
  host=$(hostname -s) cores=$(nproc)
  mkdir -p "$dir"/{munge,state,spool,log}
  chmod 755 "$dir"
  # A key and a daemon of the cluster's own: a munge that this machine may have is left alone.
  mungekey -c -f -k "$dir/munge/key"
  chown -R munge: "$dir/munge"
  chmod 711 "$dir/munge"
  runuser -u munge -- munged --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
    --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --force
  cat > "$dir/slurm.conf" <<EOF
ClusterName=weft
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/log/slurmctld
SlurmdLogFile=$dir/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=5
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=$((cores < 2 ? 2 : cores)) RealMemory=1000 Gres=gpu:4 Feature=gpu State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
PartitionName=booster Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=YES
PartitionName=gh Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=YES
EOF
  # Four GPUs for Slurm to count: devices like /dev/null.
  for gpu in 0 1 2 3; do mknod "$dir/gpu$gpu" c 1 3; done
  echo "Name=gpu File=$dir/gpu[0-3]" > "$dir/gres.conf"
  export SLURM_CONF=$dir/slurm.conf
  slurmctld
  slurmd
  for _ in $(seq 300); do
    [[ $(sinfo -h -o %T 2>/dev/null) == idle ]] && return 0
    sleep 0.2
  done
  echo "error: the node did not become idle: $(sinfo 2>&1)" >&2
  tail -n 20 "$dir"/log/* >&2
  return 1
}

stop_cluster() {
  local dir=$1 pid
  [[ -n ${SLURM_CONF:-} ]] && scancel --user root 2>/dev/null
  for daemon in slurmd slurmctld munge/pid; do
    local file=$dir/$daemon
    [[ $daemon == munge/pid ]] || file=$file.pid
    pid=$(cat "$file" 2>/dev/null) || continue
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
  done
}

# Slurm lets a requeued job rest for two minutes, with a reason: slurmd refuses an attempt whose credential is of the second in
# which the one before was killed ("already killed, do not launch"), and the job has then failed. So two seconds' rest, from when
# the kill is over (the state is COMPLETING until then).
wake_requeued() {
  [[ $(scontrol show job "$1" 2>/dev/null) == *JobState=PENDING* ]] || return 0
  sleep 2
  scontrol update JobId="$1" StartTime=now 2>/dev/null || true
}

wait_for_job() {
  job_state=
  for _ in $(seq 1200); do
    job_state=$(scontrol show job "$1" | grep -o 'JobState=[A-Z_]*') || true
    job_state=${job_state#*=}
    case $job_state in
      COMPLETED) return 0 ;;
      BOOT_FAIL | CANCELLED | DEADLINE | FAILED | NODE_FAIL | OUT_OF_MEMORY | TIMEOUT) return 1 ;;
    esac
    sleep 0.1
  done
  scancel "$1"
  return 1
}

sbatch_wait() {
  local variables=() job
  while [[ $1 == [A-Z]*=* ]]; do variables+=("$1") && shift; done
  job=$(env "${variables[@]}" sbatch --parsable "$@") && wait_for_job "$job"
}

enter_cluster() {
  local lacks
  lacks=$(cluster_lacks)
  if [[ -n $lacks ]]; then
    echo "SKIPPED: a Slurm of one machine needs $lacks"
    exit 77
  fi
  # munged insists on folders that nobody else can write, all the way up.
  cluster=$(mktemp -d /run/weft_slurm.XXXXXX)
  trap 'stop_cluster "$cluster"; rm -rf "$cluster"' EXIT
  if ! start_cluster "$cluster" > "$cluster/start.log" 2>&1 || ! srun -n 2 true >> "$cluster/start.log" 2>&1; then
    cat "$cluster/start.log"
    echo "SKIPPED: slurmctld, slurmd or munged does not run on this machine, see above"
    exit 77
  fi
}
