"""What `up` has made so far, written before it is made, so that `down` can undo it after any crash."""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class State:
    """The record of one cluster."""

    own_docker: bool = False
    made_network: bool = False
    """Whether kind's network was not there before us."""
    cluster: str = ""
    """The fingerprint of the nodes that are up; empty while they are being made."""
    loaded: dict[str, str] = field(default_factory=dict)
    """Our images in the nodes: name and Docker's id."""
    layers: dict[str, list[str]] = field(default_factory=dict)
    """The layers of those images, by name."""

    def having(self, **changes: Any) -> "State":
        return replace(self, **changes)


def load(path: Path) -> State | None:
    """The record, or None where nothing was made. A torn file cannot be: it is replaced whole."""
    try:
        read = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    known = {field.name for field in fields(State)}  # another version of this tooling may have written more
    return State(**{name: value for name, value in read.items() if name in known})


def save(path: Path, state: State) -> State:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".fresh")
    fresh.write_text(json.dumps(asdict(state), indent=1))
    fresh.rename(path)
    return state
