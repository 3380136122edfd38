#!/bin/sh
# modules.sh - which module a process loads for its launcher, and what it says where there is none.
# modules.sh LG_INFO LIBGRAD_SO
set -eu
info=$1 library=$2
. "$(dirname "$0")/../script.sh"
unset LIBGRAD_MPI OMPI_COMM_WORLD_SIZE PMI_SIZE SLURM_STEP_NUM_TASKS PMIX_RANK

# says WORDS CODE VARIABLE=VALUE...: lg-info --group under these variables
says()
{
        words=$1 code=$2 got=0
        shift 2
        env "$@" "$info" --group >"$work/out" 2>&1 || got=$?
        [ $got = "$code" ] || complain "$*: exit $got, not $code"
        grep -q -e "$words" "$work/out" || complain "$*: says \"$(cat "$work/out")\", not \"$words\""
}
says '^1 process: no launcher' 0 A=
says '^1 process: no launcher' 0 LIBGRAD_MPI= PMI_SIZE=2
says 'the module that LIBGRAD_MPI names could not be loaded: /nonexistent.so' 1 LIBGRAD_MPI=/nonexistent.so
says 'the module libm.so.6 is of another version' 1 LIBGRAD_MPI=libm.so.6 PMI_SIZE=2
says "^1 process: no launcher" 0 SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=8
says "^1 process: no launcher" 0 SLURM_NTASKS=8 # in a script of sbatch, without srun

# libgrad.so where no modules are, nor the system has them; then files that are none
cp "$library" "$work/libgrad.so.1"
export LD_LIBRARY_PATH="$work"
says "PMI_SIZE=2: MPICH's launcher .*libgrad-mpich.so.1: cannot open.*; install libgrad1-mpich, .* libmpich-dev" 1 PMI_SIZE=2
says "Open MPI's launcher .*libgrad-openmpi.so.1: cannot open.*; install libgrad1-openmpi, .* libopenmpi-dev" 1 OMPI_COMM_WORLD_SIZE=2
says 'Slurm, with PMIx, has .*install libgrad1-openmpi' 1 SLURM_STEP_NUM_TASKS=2 PMIX_RANK=0
says 'Slurm has .*install libgrad1-mpich' 1 SLURM_STEP_NUM_TASKS=2
echo no module >"$work/libgrad-mpich.so.1"
says "$work/libgrad-mpich.so.1: \(file too short\|invalid ELF header\)" 1 PMI_SIZE=2
exit $status
