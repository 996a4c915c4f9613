"""Goal: however a question for a passphrase ends, the terminal shows again what is typed, and nothing
is taken for a passphrase that nobody has typed.
Method: the built program on a pseudo terminal of its own, in the foreground of a session as a shell
would start it. Every wait is for the question or for the program's change of state. Prints TAP."""

import fcntl
import os
import pty
import shutil
import signal
import sys
import tempfile
import termios

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../support")]
sys.dont_write_bytecode = True

import tap  # noqa: E402

LOCKSTEP = os.environ["TEST_LOCKSTEP"]
WAIT_MAX_S = 120  # a program that asks for ever is ended, and fails
folder = tempfile.mkdtemp(prefix="lockstep-test-")


def lead(terminal, report):
    """Leads a session: starts the program and tells how it was when it ended or stopped."""
    os.setsid()
    signal.alarm(WAIT_MAX_S)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    program = os.fork()
    if program == 0:
        signal.alarm(WAIT_MAX_S)  # it outlives the call below
        for descriptor in range(3):
            os.dup2(terminal, descriptor)
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        environment = {name: value for name, value in os.environ.items()
                       if name != "LOCKSTEP_PASSPHRASE"}
        os.execve(LOCKSTEP, [LOCKSTEP, "wallet", "new", "--light", "--wallet", folder], environment)
    os.write(report, b"%d\n" % program)
    _, how = os.waitpid(program, os.WUNTRACED)
    shows = termios.tcgetattr(terminal)[3] & termios.ECHO != 0
    os.write(report, b"%d %d\n" % (how, shows))
    if os.WIFSTOPPED(how):
        os.tcsetpgrp(terminal, program)
        os.kill(program, signal.SIGCONT)
        _, how = os.waitpid(program, 0)
        os.write(report, b"%d 1\n" % how)
    os._exit(0)


class Session:
    def __init__(self):
        self.master, terminal = pty.openpty()
        said, report = os.pipe()
        self.leader = os.fork()
        if self.leader == 0:
            lead(terminal, report)
        os.close(report)
        self.said = os.fdopen(said, "r")
        self.program = int(self.said.readline())
        self.terminal = terminal
        self.seen = b""

    def wait(self, question):
        while question not in self.seen:
            self.seen += os.read(self.master, 4096)
        self.seen = b""

    def type(self, keys):
        os.write(self.master, keys)

    def state(self):
        how, shows = map(int, self.said.readline().split())
        return how, shows == 1

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if failure[0]:
            os.kill(self.leader, signal.SIGKILL)  # the terminal's end ends the program
        os.waitpid(self.leader, 0)
        os.close(self.master)
        os.close(self.terminal)
        self.said.close()


def a_signal_gives_the_terminal_back():
    for number, keys in ((signal.SIGINT, b"half\x03"), (signal.SIGQUIT, b"\x1c"),
                         (signal.SIGTERM, None), (signal.SIGHUP, None)):
        with Session() as session:
            session.wait(b"New passphrase: ")
            if keys is None:
                os.kill(session.program, number)
            else:
                session.type(keys)
            how, shows = session.state()
            assert os.WIFSIGNALED(how) and os.WTERMSIG(how) == number, (number, how)
            assert shows, number


def a_program_that_is_stopped_gives_it_back_and_asks_again():
    with Session() as session:
        session.wait(b"New passphrase: ")
        session.type(b"\x1a")
        how, shows = session.state()
        assert os.WIFSTOPPED(how) and shows, (how, shows)
        session.wait(b"New passphrase: ")
        session.type(b"pass words\n")
        session.wait(b"Again: ")
        session.type(b"pass words\n")
        how, _ = session.state()
        assert how == 0, how


def the_end_of_what_is_typed_is_no_passphrase():
    for typed in ((b"\x04",), (b"one\n", b"\x04")):
        with Session() as session:
            for question, keys in zip((b"New passphrase: ", b"Again: "), typed):
                session.wait(question)
                session.type(keys)
            session.wait(b"what is typed has ended")
            how, shows = session.state()
            assert os.waitstatus_to_exitcode(how) == 3 and shows, (how, shows)


def main():
    tests = (a_signal_gives_the_terminal_back,
             a_program_that_is_stopped_gives_it_back_and_asks_again,
             the_end_of_what_is_typed_is_no_passphrase)
    signal.alarm(2 * WAIT_MAX_S)
    try:
        return tap.run(tests)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
