"""`python -m millrace_operator run`: the operator, in a pod or outside of the cluster with a kubeconfig."""

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from millrace.errors import UserError
from millrace_operator.edge import credentials, watches
from millrace_operator.edge.operator import run
from millrace_operator.settings import AlertsDoor, JobDefaults, Settings


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    watches.quiet()
    try:
        found = credentials.find(options.kubeconfig, options.context)
        settings = make_settings(options, found)
        return asyncio.run(run(found, settings, options.port))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2


def make_settings(options: argparse.Namespace, found: credentials.Credentials) -> Settings:
    defaults = JobDefaults()
    return Settings(
        namespaces=tuple(options.namespace),
        home=options.home or found.namespace,
        lag_observer=options.lag_observer,
        through_api=not found.in_cluster,
        alerts=AlertsDoor(options.alerts_token_file, options.alerts_without_token),
        jobs=JobDefaults(
            image=options.job_image or defaults.image,
            bootstrap_servers=options.bootstrap or defaults.bootstrap_servers,
            checkpoint_size=options.checkpoint_size or defaults.checkpoint_size,
            checkpoint_class=options.checkpoint_class,
        ),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m millrace_operator", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("run", help="run the operator").add_argument
    add("--namespace", action="append", default=[], help="watch this namespace only; may be given again (default: all)")
    add("--home", help="namespace of the Lease and the canary (default: the pod's or the kubeconfig's own)")
    add("--kubeconfig", help="reach the cluster by this file")
    add("--context", help="context of the kubeconfig")
    add("--job-image", help="image of drivers and executors where a spec names none")
    add("--bootstrap", help="Kafka brokers where a spec names none")
    add("--checkpoint-size", help="size of checkpoint volumes where a spec names none")
    add("--checkpoint-class", help="StorageClass (ReadWriteMany) of checkpoint volumes where a spec names none")
    add("--lag-observer", help="address of the lag observer's metrics, for lag in the status")
    add("--port", type=int, help="serve /healthz, /metrics and /alerts here")
    add("--alerts-token-file", type=Path, metavar="PATH", help="take alerts only with the bearer token in this file")
    add("--alerts-without-token", action="store_true", help="take alerts from anyone, where there is no token file")
    add("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return parser


if __name__ == "__main__":
    sys.exit(main())
