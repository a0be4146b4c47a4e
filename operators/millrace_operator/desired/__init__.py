"""What should be there for a job: one file per Kubernetes object, each a pure function from target to manifest."""

from millrace_operator.actions import Manifest
from millrace_operator.desired import configmap, pvc, role, rolebinding, service, serviceaccount, statefulset
from millrace_operator.desired.target import Target
from millrace_operator.settings import JobDefaults


def everything(target: Target, defaults: JobDefaults) -> list[Manifest]:
    """All objects of a job, in the order in which they are needed: the driver last."""
    volume = pvc.claim(target, defaults)
    return [
        configmap.spec(target, defaults),
        serviceaccount.driver(target),
        role.driver(target),
        rolebinding.driver(target),
        service.headless(target),
        *([volume] if volume is not None else []),
        statefulset.driver(target, defaults),
    ]
