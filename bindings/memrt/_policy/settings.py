"""Settings of policies as texts, for options, representations and errors."""

from __future__ import annotations

from memrt._support.options import option_text

ALL = "1"  # mean of MEMRT_GUARD_SAMPLE with which each array gets guard pages


def setting_text(setting: str, value: int | str | None) -> str | None:
    """Return the value of a setting as a text of the option. None: as the process."""
    return None if value is None else option_text(setting, value)


def guard_text(guard: int | str | None) -> str | None:
    """Return the mean distance of guarded arrays as a text of the option."""
    return ALL if guard == "all" else setting_text("guard", guard)


def described(option: tuple[str, str]) -> str:
    """Return an option of a policy as part of the representation."""
    return f", {option[0].removeprefix('MEMRT_').lower()} {option[1]}"


def fixed_error(name: str, reason: str) -> AttributeError:
    """Return the error for a change of a property that is fixed."""
    return AttributeError(
        f"{name} of a live policy must stay, because {reason}: create another policy"
    )
