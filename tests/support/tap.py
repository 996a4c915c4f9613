"""Runs the tests of a Python program and tells of them as TAP. Not a test."""


class Skip(Exception):
    """A test raises it with the reason."""


def skipped(test, why):
    """The test, which skips itself."""
    def skip():
        raise Skip(why)

    skip.__name__ = test.__name__
    return skip


def run(tests):
    """Returns the exit code."""
    failed = 0
    print("1..%d" % len(tests), flush=True)
    for number, test in enumerate(tests, 1):
        try:
            test()
            print("ok %d - %s" % (number, test.__name__), flush=True)
        except Skip as why:
            print("ok %d - %s # SKIP %s" % (number, test.__name__, why), flush=True)
        except Exception as error:  # every surprise is a failure of that test
            failed = 1
            print("not ok %d - %s: %r" % (number, test.__name__, error), flush=True)
    return failed
