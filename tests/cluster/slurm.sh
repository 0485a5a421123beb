# slurm.sh: sourced inside the sandbox; a Slurm of four nodes, n0 .. n3, on this one machine.
# Each node has its own host name and /dev/shm, so ranks on two nodes meet over TCP as on a cluster.
# Without systemd and with no state outside $scratch; the daemons end with the sandbox.

slurm_failed() {
  tail -v -n 20 "$scratch"/slurm/log/*.log "$scratch"/slurm/munge/*.log >&2
  fail "$1"
}

# start_slurm: returns when the four nodes are idle. Exports what sbatch and mpirun need.
start_slurm() {
  local d=$scratch/slurm host
  host=$(hostname)
  mkdir -p "$d"/{ctld,spool,tmp,log,munge}
  chmod 755 "$scratch" "$d"
  export SLURM_CONF=$d/slurm.conf OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo

  { cat /etc/hosts; printf '127.0.0.1 %s\n' "$host" n0 n1 n2 n3; } >"$d/hosts"
  mount --bind "$d/hosts" /etc/hosts

  local m=$d/munge
  head -c 1024 /dev/urandom >"$m/munge.key"
  chmod 400 "$m/munge.key"
  chown -R munge:munge "$m"
  setpriv --reuid=munge --regid=munge --clear-groups munged --key-file="$m/munge.key" \
    --socket="$m/munge.socket" --pid-file="$m/munged.pid" --log-file="$m/munged.log" \
    --seed-file="$m/munge.seed"

  cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$m/munge.socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$d/ctld
SlurmdSpoolDir=$d/spool/%n
TmpFS=$d/tmp/%n
SlurmctldPidFile=$d/slurmctld.pid
SlurmdPidFile=$d/slurmd.%n.pid
SlurmctldLogFile=$d/log/slurmctld.log
SlurmdLogFile=$d/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=5,bf_interval=5,batch_sched_delay=0
ReturnToService=2
SwitchType=switch/none
MpiDefault=none
KillWait=5
NodeName=n[0-3] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17000-17003] CPUs=2 RealMemory=1000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF

  slurmctld -c -f "$SLURM_CONF" || slurm_failed "slurmctld does not start"
  local node
  for node in n0 n1 n2 n3; do
    mkdir -p "$d/spool/$node" "$d/tmp/$node"
    unshare --mount --uts sh -ec 'mount -t tmpfs tmpfs /dev/shm; hostname "$0"; exec "$@"' \
      "$node" slurmd -N "$node" -f "$SLURM_CONF" || slurm_failed "slurmd does not start"
  done

  local tries
  for tries in $(seq 50); do
    [ "$(timeout 2 sinfo -h -t idle -o %D 2>/dev/null)" = 4 ] && return
    sleep 0.1
  done
  slurm_failed "Slurm's nodes were not idle within 10 s"
}
