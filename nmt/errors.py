"""What a user can mend. Programs print the message as one line and exit with `code`."""


class UserError(Exception):
    """One line: the file, line or key at fault, and what to do next."""

    code = 1


class ConfigError(UserError):
    """A setting that cannot be used as it stands."""

    code = 2


def require_text(key: str, value: object) -> None:
    """ConfigError, naming the key, where a setting is there but is no single text."""
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{key}={value}: give one name")


def require_flag(key: str, value: object) -> None:
    """ConfigError, naming the key, where a setting is neither true nor false: "no" would count as yes."""
    if not isinstance(value, bool):
        raise ConfigError(f"{key}={value}: give true or false")


def require_whole(key: str, value: object, least: int = 1) -> None:
    """ConfigError, naming the key, where a setting is no whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        shown = "null" if value is None else value
        raise ConfigError(f"{key}={shown}: give a whole number, {least} or more")
