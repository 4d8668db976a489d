"""The program's entry. Start-up is imports, so the version is answered before any, and nothing is slow at exit."""

import sys

from bantam import __version__


def main() -> None:
    """Run Bantam and leave with its exit status."""
    arguments = sys.argv[1:]
    import os  # the interpreter has it already

    if arguments == ["--version"]:
        try:
            os.write(1, f"bantam {__version__}\n".encode())
        except OSError:
            sys.exit(1)
        return
    import gc

    for fd in (0, 1, 2):  # a stream that was closed must not become the number of a session file or a connection
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest number; writing to it fails as it should
    gc.disable()  # nothing of what imports make is garbage; whoever runs for long enables it again
    try:
        _heed_signals()
        from bantam.front import cli

        code = cli.run(arguments)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:  # before the signal handlers stand
        code = 130
    except Exception as bug:  # the saved conversation and the log are whole; a traceback helps no user
        from bantam.core.words import status
        from bantam.front.show.tell import complain

        complain(status.unexpected(bug))
        code = 1
    try:
        if sys.stdout:  # None where it was closed before the start
            sys.stdout.flush()
    except OSError as problem:
        code = 141 if isinstance(problem, BrokenPipeError) else 1
    os._exit(code)  # an interpreter that holds aiohttp takes 30 ms to tidy up what the system tidies anyway


def _heed_signals() -> None:
    """Until somebody heeds them better, a signal ends the program at once: an import is no place for an exception."""
    import os
    import signal

    def leave(number: int, _: object) -> None:
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


if __name__ == "__main__":
    main()
