"""A job's checkpoint folder: opened, and refused when it belongs to another job or no longer fits the spec."""

import json

from millrace.errors import UserError
from millrace.resources.jobs import StreamJob
from millrace_jobs.files import Folder

CARD = "job.json"


def open_checkpoint(address: str, job: StreamJob) -> Folder:
    """The folder, with a card in it that says whose it is and what its state was made with."""
    folder = Folder(address)
    content = folder.read(CARD)
    own = {"namespace": job.metadata.namespace, "job": job.metadata.name}
    if content is not None:
        card = json.loads(content)
        if {name: card.get(name) for name in own} != own:
            raise UserError(
                f"The checkpoint {address} belongs to job {card.get('namespace')}/{card.get('job')}: "
                "give this job a folder of its own."
            )
    folder.write(CARD, json.dumps({**own, "spec": job.spec.model_dump(mode="json", by_alias=True)}).encode())
    return folder
