"""sides.py - the sides that tools/bench compares: a process, or the processes of a job, that answer in lines of JSON."""
import json
import os
import shutil
import socket
import subprocess


class Failure(Exception):
    """An error whose message is for the user."""


class Side:
    """A process that answers lines "run NAME SECONDS" with lines of JSON."""

    def __init__(self, name, command, environment=None):
        self.name, self.processes, self.inputs = name, [], []
        self.begin(command, environment or {})
        self.process = self.processes[0]  # rank 0, which answers
        self.head = self.answer("at its start")

    def begin(self, command, environment):
        self.start(command, environment)
        self.inputs.append(self.processes[0].stdin)

    def start(self, command, environment, **more):
        how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **more}
        self.processes.append(subprocess.Popen(command, text=True, bufsize=1, **how, env={
            **os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}))

    def answer(self, when):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"{self.name} ended {when}, exit status {self.process.wait()}")
        return json.loads(line)

    def measure(self, item, seconds):
        for f in self.inputs:
            try:
                print("run", item, seconds, file=f, flush=True)
            except BrokenPipeError:
                pass
        return self.answer(f"while it ran {item}")

    def close(self):
        for f in self.inputs:
            f.close()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


class MPISide(Side):
    """Processes started by mpirun, which passes its input to one of them only; so each one reads a FIFO in `folder`."""

    def __init__(self, name, command, environment, count, folder):
        self.count, self.folder = count, folder
        super().__init__(name, command, environment)

    def begin(self, command, environment):
        mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        if not mpirun:
            raise Failure("there is no mpirun: --processes needs Open MPI (Debian: apt-get install libopenmpi-dev openmpi-bin)")
        for rank in range(self.count):
            fifo = os.path.join(self.folder, f"rank-{rank}")
            os.mkfifo(fifo)
            self.inputs.append(os.fdopen(os.open(fifo, os.O_RDWR), "w"))  # O_RDWR: does not wait for a reader
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        read = f'exec "$0" "$@" < "{self.folder}/rank-$OMPI_COMM_WORLD_RANK"'
        self.start([mpirun, *root, "-quiet", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", "-n",
                    str(self.count), "sh", "-c", read, *command], environment, stdin=subprocess.DEVNULL)


class TorchSide(Side):
    """The processes of PyTorch's DistributedDataParallel, one for each rank."""

    def __init__(self, name, command, environment, count):
        self.count = count
        super().__init__(name, command, environment)

    def begin(self, command, environment):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        for rank in range(self.count):
            self.start(command, {**environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank),
                                 "WORLD_SIZE": str(self.count)}, **({"stdout": subprocess.DEVNULL} if rank else {}))
            self.inputs.append(self.processes[rank].stdin)
