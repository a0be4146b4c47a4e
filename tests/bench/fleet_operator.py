"""The operator as its bench runs it: as ever, but it lists everything anew on SIGUSR1 and never on its own.

python -m tests.bench.fleet_operator NAMESPACE KUBECONFIG BOOTSTRAP
"""

import asyncio
import signal
import sys

import aiohttp

from millrace_operator.edge import credentials, watches
from millrace_operator.edge.api import Api
from millrace_operator.edge.operator import Operator
from millrace_operator.settings import JobDefaults, Pace, Settings

NEVER = 1e9  # seconds
NOBODY = "nobody-provisions-this"  # a class without a provisioner: the pods are asked for, and stay pending


async def run(namespace: str, kubeconfig: str, bootstrap: str) -> None:
    found = credentials.find(kubeconfig, None)
    jobs = JobDefaults(image="millrace/job:dev", bootstrap_servers=bootstrap, checkpoint_class=NOBODY)
    settings = Settings((namespace,), namespace, through_api=True, jobs=jobs, pace=Pace(resync=NEVER))
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    lists: set[asyncio.Task[None]] = set()
    async with Api(found, settings.deadlines.api) as api, aiohttp.ClientSession() as session:
        operator = Operator(api, session, found, settings)
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_signal_handler(signal.SIGUSR1, lambda: lists.add(asyncio.ensure_future(operator.list_everything())))
        await operator.run(None, stop)


if __name__ == "__main__":
    watches.quiet()
    asyncio.run(run(*sys.argv[1:]))
