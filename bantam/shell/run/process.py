"""Performs `RunShell`: a command in a process group of its own, its output bounded while it is read.

It decides nothing: what runs, for how long and how much is kept comes with the request. It never
raises and never blocks the loop, and when it is cancelled nothing of the process group is left. What a
finished command left in the background lives on, also when Bantam ends.
"""

import asyncio
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bantam.core.effects import RunShell
from bantam.core.events import CommandEnded, Event, ToolProgress
from bantam.core.rules.redact import Stream
from bantam.core.tools.clip import Clip

READ_BYTES = 65_536  # the size of a pipe: one read empties it, and is short enough for the loop
GLIMPSE_EVERY_S = 0.5
GRACE_S = 0.5  # from SIGTERM to SIGKILL
DYING_S = 0.2  # what SIGKILL may take; only a process stuck in the kernel needs longer
LOOK_EVERY_S = 0.01
ARGUMENT_BYTES_MAX = 100_000  # a longer command is no argument: Linux takes 131,071 bytes in one, others less in all


async def run(
    request: RunShell,
    environment: Mapping[str, str] | None = None,
    secrets: Stream[bytes] | None = None,
    folder: Path | None = None,
) -> AsyncGenerator[Event, None]:
    """Run the command in `folder` until its shell ends, its time is up or the task is cancelled.

    `environment` is the child's whole environment. None: the environment or the folder of this process. `secrets`
    takes secrets out of the output before it is cut, so that none is cut in two.
    """
    try:
        command = _Command(request, environment, secrets or Stream((), b""), folder)
    except (OSError, ValueError) as error:
        yield _refusal(request, error)
        return
    try:
        while command.goes_on():
            await command.news.wait()
            for progress in command.progress():
                yield progress
    finally:
        stopped = await command.stop()
    for progress in command.progress():
        yield progress
    yield command.ended(timed_out=stopped)


class _Command:
    """A shell that runs, its pipe, and the timers: all of them call by setting `news`."""

    def __init__(
        self, request: RunShell, environment: Mapping[str, str] | None, secrets: Stream[bytes], folder: Path | None
    ) -> None:
        self.news = asyncio.Event()
        self._id = request.id
        self._secrets = secrets
        self._clip = Clip(request.output_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._is_late = False
        self._glimpse_due = False
        self._glimpse_timer: asyncio.TimerHandle | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        end_s = self._loop.time() + request.timeout_s
        self._pipe, write_end = _open_pipe(self._keep, (environment or {}).get("PATH", os.defpath))
        try:
            self._process = _start(request, environment, folder, write_end)
        finally:
            os.close(write_end)  # without a child this ends the pipe, which then closes itself
        self._alarm = self._loop.call_at(end_s, self._ring)
        self._pidfd = self._watch()

    def goes_on(self) -> bool:
        """Whether the shell runs and has time left."""
        return self._process.returncode is None and not self._is_late

    def progress(self) -> Iterator[ToolProgress]:
        """What there is to tell now."""
        self.news.clear()
        if text := self._clip.told():
            yield ToolProgress(self._id, text)
        if self._glimpse_due:
            self._glimpse_due, self._glimpse_timer = False, None
            words, skipped = self._clip.glimpse()
            if words:
                yield ToolProgress(self._id, words, skipped)

    def ended(self, timed_out: bool) -> CommandEnded:
        """The last event."""
        tail, skipped = self._clip.end()
        code, name = (124, "") if timed_out else _status(self._process.returncode)
        return CommandEnded(self._id, code, tail, skipped, name, timed_out)

    async def stop(self) -> bool:
        """Leave nothing of the group, unless the shell has ended by itself; False if it had.

        It is no task, since a loop that closes cancels all of them, and a cancellation of the task
        that waits here is only noted until the group is gone.
        """
        needed = self._process.poll() is None
        cancelled = False
        for number, wait_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, DYING_S)) if needed else ():
            until = self._loop.time() + wait_s
            self._signal(number)
            while self._is_group_alive() and self._loop.time() < until:
                cancelled |= await _pause()
        self._forget()
        if cancelled:
            raise asyncio.CancelledError
        return needed

    def _signal(self, number: int) -> bool:
        """Send a signal to the group, 0 to ask only; False if nobody is there who would take it."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _is_group_alive(self) -> bool:
        leader_is_dead = self._process.poll() is not None
        return self._signal(0) and not (leader_is_dead and _are_all_dead(self._process.pid))

    def _forget(self) -> None:
        """Give back everything."""
        for timer in (self._alarm, self._glimpse_timer, self._look_timer):
            if timer is not None:
                timer.cancel()
        self._glimpse_due = False
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._pipe.abandon()
        self._clip.feed(self._secrets.end())

    def _keep(self, data: bytes) -> None:
        if not self._clip.is_head_full:
            self.news.set()
        self._clip.feed(self._secrets.feed(data))
        if self._clip.is_head_full and self._glimpse_timer is None:
            self._glimpse_timer = self._loop.call_later(GLIMPSE_EVERY_S, self._ask_glimpse)

    def _ask_glimpse(self) -> None:
        self._glimpse_due = True
        self.news.set()

    def _ring(self) -> None:
        self._is_late = True
        self.news.set()

    def _watch(self) -> int | None:
        """Have `_look` called when the shell ends, by a pidfd; without one it looks again and again."""
        open_pidfd = getattr(os, "pidfd_open", None)
        try:
            pidfd: int = open_pidfd(self._process.pid) if open_pidfd else -1
        except OSError:  # an old kernel, a sandbox, no descriptor left
            pidfd = -1
        if pidfd < 0:
            self._look(LOOK_EVERY_S / 10)
            return None
        self._loop.add_reader(pidfd, self._look)
        return pidfd

    def _look(self, again_s: float = 0) -> None:
        if self._process.poll() is not None:
            self.news.set()
        elif again_s:
            self._look_timer = self._loop.call_later(again_s, self._look, min(again_s * 1.5, LOOK_EVERY_S))


class _Pipe:
    """The read end of a command's output: what comes is given to `keep`, and once abandoned to nobody.

    `path` is where the program is looked for that reads on then.
    """

    def __init__(self, fd: int, keep: Callable[[bytes], None], path: str = os.defpath) -> None:
        self._fd: int | None = fd
        self._keep, self._path = keep, path
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._read, READ_BYTES)

    def abandon(self) -> None:
        """Keep what is in the pipe at this moment, and nothing that comes later.

        What a command left in the background shall neither block on a full pipe nor die of a broken one,
        so if there is a writer left, another process reads on.
        """
        left = 0 if self._fd is None else _bytes_in(self._fd)
        while got := self._read(min(left, READ_BYTES)):
            left -= got
        self._keep = _discard
        if self._fd is not None and (not _has_writer(self._fd) or _read_elsewhere(self._fd, self._path)):
            self._close(self._fd)

    def _read(self, size: int) -> int:
        """Read once, without waiting; how much it was. At the end the pipe is closed."""
        if self._fd is None or not size:
            return 0
        try:
            data = os.read(self._fd, size)
        except BlockingIOError:
            return 0
        if data:
            self._keep(data)
        else:
            self._close(self._fd)
        return len(data)

    def _close(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        os.close(fd)
        self._fd = None


def _open_pipe(keep: Callable[[bytes], None], path: str) -> tuple[_Pipe, int]:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    return _Pipe(read_end, keep, path), write_end


def _bytes_in(pipe: int) -> int:
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def _has_writer(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)
    return not poll.poll(0)


def _read_elsewhere(pipe: int, path: str) -> bool:
    """Start a process that reads the pipe to its end, whatever becomes of Bantam; False if none can be started.

    It keeps nothing of Bantam's but the pipe: no terminal, no folder, no environment that a key could be in.
    """
    os.set_blocking(pipe, True)  # the same open pipe, so `cat` would have to do without waiting too
    try:
        reader = subprocess.Popen(
            ["cat"],
            stdin=pipe,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": path},
            start_new_session=True,
        )
    except OSError:
        os.set_blocking(pipe, False)
        return False
    with suppress(RuntimeError):  # no thread to be had: then it is waited for when the next process starts
        threading.Thread(target=reader.wait, daemon=True).start()
    return True


def _discard(_: bytes) -> None:
    pass


def _start(
    request: RunShell, environment: Mapping[str, str] | None, folder: Path | None, output: int
) -> subprocess.Popen[bytes]:
    with _arguments(request.command) as (arguments, descriptors), _standing(folder) as where:
        return subprocess.Popen(
            [request.shell, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=where,
            pass_fds=descriptors,
            start_new_session=True,
        )


@contextmanager
def _standing(folder: Path | None) -> Iterator[Path | None]:
    """The folder, while a command is started in it; one that was removed for one that is, as soon as it has started.

    So it goes to any shell whose folder is removed, and what it is told to do elsewhere it can do.
    """
    if folder is None or folder.exists():
        yield folder
        return
    import tempfile

    gone = Path(tempfile.mkdtemp())
    try:
        yield gone
    finally:
        gone.rmdir()


@contextmanager
def _arguments(command: str) -> Iterator[tuple[list[bytes], tuple[int, ...]]]:
    """How a shell is told its command, and the descriptors that it needs for that: a long one comes in a file.

    The file has no name, so nothing is left of it when the shell has ended. Raises OSError, ValueError.
    """
    data = command.encode()  # UTF-8 under any locale
    if len(data) <= ARGUMENT_BYTES_MAX:
        # a command that begins with - or + is no option of the shell
        yield [b"-c", b" " + data if data[:1] in (b"-", b"+") else data], ()
        return
    if b"\0" in data:  # which a shell would leave out, or take for the end
        raise ValueError("embedded null byte")
    import tempfile  # which takes 7 ms, and such a command is rare

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)  # writes it; and opening /dev/fd/N goes on where N stands, except on Linux
        yield [b"/dev/fd/%d" % file.fileno()], (file.fileno(),)


def _refusal(request: RunShell, error: OSError | ValueError) -> CommandEnded:
    """Why nothing runs, with the codes that shells use: 127 for what is not there, 126 for the rest."""
    if isinstance(error, OSError):
        where = f"in {error.filename}: " if isinstance(error.filename, Path) else ""  # it is the folder that is gone
        why = where + (error.strerror or str(error))
    elif "\0" in request.command:
        why = "the command has a NUL character in it"
    else:
        why = str(error)
    code = 127 if isinstance(error, FileNotFoundError) else 126
    return CommandEnded(request.id, code, problem=f"cannot run {request.shell}: {why}")


def _status(returncode: int) -> tuple[int, str]:
    """A process's end as a shell tells it, and the name of the signal, if one ended it."""
    if returncode >= 0:
        return returncode, ""
    try:
        name = signal.Signals(-returncode).name
    except ValueError:  # most real-time signals have none
        name = f"SIG{-returncode}"
    return 128 - returncode, name


def _are_all_dead(group: int) -> bool:
    """Whether all that is left of a process group are dead processes that nobody has waited for.

    The first process of a container takes its time for that, if it does it at all. Where there is no
    /proc nobody can say, and the wait is a little longer.
    """
    try:
        pids = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return False
    # the newest first: there a living one is found soon
    return bool(pids) and all(_state(pid, group) in (b"", b"Z", b"X") for pid in reversed(pids))


def _state(pid: str, group: int) -> bytes:
    """The state letter of a process in /proc; nothing if it is not one of the group, or no more."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, _, its_group, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return b""
    return state if int(its_group) == group else b""


async def _pause() -> bool:
    """Give processes a moment; whether a cancellation came meanwhile."""
    try:
        await asyncio.sleep(LOOK_EVERY_S)
    except asyncio.CancelledError:
        return True
    return False
