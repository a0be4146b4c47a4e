"""A job's checkpoint folder: opened, and refused when it belongs to another job or no longer fits the spec.

A card in the folder says whose it is and what its state was made with. It also carries the state's own name, which the
sinks keep beside the numbers of batches: batches of a new state start at 0 again, and must not be taken for old ones.
"""

import uuid
from dataclasses import dataclass
from typing import Any

import msgspec

from millrace.errors import UserError
from millrace.resources.changes import fingerprint, misfits
from millrace.resources.jobs import StreamJob
from millrace_jobs.files import Folder

CARD = "job.json"


class CheckpointError(UserError):
    """The state is not one that this job can go on from."""


class Card(msgspec.Struct, frozen=True):
    """What the card says. `epoch` counts how often the job began anew; the first state lies in the folder itself."""

    namespace: str
    job: str
    state: str
    epoch: int
    made_with: dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """An open checkpoint: where the state lies, and its name."""

    folder: Folder
    state: str


def open_checkpoint(address: str, job: StreamJob) -> Checkpoint:
    """The job's state, the old one or a new one, as the spec has it. Nothing of an older state is deleted."""
    folder = Folder(address)
    old = _read(folder)
    if old is not None and (old.namespace, old.job) != (job.metadata.namespace, job.metadata.name):
        raise CheckpointError(
            f"The checkpoint {address} belongs to job {old.namespace}/{old.job}: give this job a folder of its own."
        )
    card = _card(job, old)
    if card != old:
        folder.write(CARD, msgspec.json.encode(card))
    return Checkpoint(folder if card.epoch == 1 else Folder(folder.at(f"epoch-{card.epoch}")), card.state)


def _card(job: StreamJob, old: Card | None) -> Card:
    now = fingerprint(job.spec)
    if old is None:
        return Card(job.metadata.namespace, job.metadata.name, uuid.uuid4().hex, 1, now)
    changes = misfits(old.made_with, job.spec)
    if not changes:
        return msgspec.structs.replace(old, made_with=now)
    if job.spec.upgrade.mode == "restart-empty":
        return msgspec.structs.replace(old, state=uuid.uuid4().hex, epoch=old.epoch + 1, made_with=now)
    lines = "; ".join(str(change) for change in changes)
    raise CheckpointError(
        f"The checkpoint does not fit the spec: {lines}. Put the old value back, or set upgrade.mode: restart-empty to "
        "start with new state from startFrom."
    )


def _read(folder: Folder) -> Card | None:
    content = folder.read(CARD)
    try:
        return None if content is None else msgspec.json.decode(content, type=Card)
    except msgspec.DecodeError as error:
        raise CheckpointError(
            f"{folder.at(CARD)} cannot be read ({error}): restore the checkpoint from a copy, or choose another folder."
        ) from error
