"""What can go wrong with a server, and how users learn of it."""
import sys


class TryAgain(Exception):
    """The server is away, slow or overloaded. `seconds`: what it asks for, or None."""

    def __init__(self, message, seconds=None):
        super().__init__(message)
        self.seconds = seconds


class Refused(Exception):
    """The server understood the request and will not take it: sending it again is no use."""


class GiveUp(Exception):
    """Nothing can be sent: wrong password, missing package, deleted run."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def warn(text):
    """`crema train` copies lines that begin like this into its log."""
    say('warning: ' + ' '.join(text.split()))
