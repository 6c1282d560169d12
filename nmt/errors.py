"""What a user can mend. Programs print the message as one line and exit with `code`."""


class UserError(Exception):
    """One line: the file, line or key at fault, and what to do next."""

    code = 1


class ConfigError(UserError):
    """A setting that cannot be used as it stands."""

    code = 2


class Interrupted(KeyboardInterrupt):
    """A signal asked the program to stop, and it has saved what it had; `code` is the exit code."""

    def __init__(self, code: int = 130) -> None:
        super().__init__()
        self.code = code


class ModelError(ConfigError):
    """A model that its arguments do not allow; the message names the arguments alone, and the entry adds `model.`."""
