"""The volume that holds a job's state, where no address of one is given.

It belongs to the resource only when the spec says that it goes with it: a deleted job keeps its state by default.
"""

from millrace import units
from millrace_operator.actions import Manifest
from millrace_operator.desired.target import EPOCH, Target, metadata
from millrace_operator.settings import JobDefaults


def claim(target: Target, defaults: JobDefaults) -> Manifest | None:
    """The claim, or None for a job whose state is elsewhere."""
    if not target.has_volume:
        return None
    meta = metadata(target, target.claim_name, "state", owned=False)
    meta["annotations"] = {EPOCH: str(target.epoch)}  # a job that is made again goes on in the same folder
    declared = target.job.spec.checkpoint
    wanted = declared.volume_claim if declared is not None else None
    size = units.format_bytes(wanted.size) if wanted is not None else defaults.checkpoint_size
    storage_class = (wanted.storage_class if wanted is not None else None) or defaults.checkpoint_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta,
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": size}},
            **({"storageClassName": storage_class} if storage_class is not None else {}),
        },
    }
