"""What somebody may do, as the API server itself says, and what a chart's roles list."""

from collections.abc import Iterable
from typing import Any

from kubernetes import client, config

from millrace_cluster.places import places

Right = tuple[str, str, str, str]
"""API group, resource, name of one object ('' for all of them), verb."""


def held(account: str, namespace: str) -> set[Right]:
    """What an account may do in a namespace, beyond what everybody may."""
    return _told(account, namespace) - _told(f"system:serviceaccount:{namespace}:nobody", namespace)


def _told(account: str, namespace: str) -> set[Right]:
    api: Any = config.new_client_from_config(str(places().kubeconfig))
    api.set_default_header("Impersonate-User", account)
    asked = client.V1SelfSubjectRulesReview(spec=client.V1SelfSubjectRulesReviewSpec(namespace=namespace))
    answer: Any = client.AuthorizationV1Api(api).create_self_subject_rules_review(asked)
    told = api.sanitize_for_serialization(answer.status.resource_rules)
    return flat(told)


def may(account: str, verb: str, resource: str, namespace: str) -> bool:
    """Whether the API server would let an account do it; a resource is group/plural or group/plural/subresource."""
    group, plural, *rest = resource.split("/")
    api: Any = config.new_client_from_config(str(places().kubeconfig))
    asked = client.V1ResourceAttributes(
        group=group, resource=plural, subresource="/".join(rest), verb=verb, namespace=namespace
    )
    review = client.V1SubjectAccessReview(
        spec=client.V1SubjectAccessReviewSpec(user=account, resource_attributes=asked)
    )
    answer: Any = client.AuthorizationV1Api(api).create_subject_access_review(review)
    return bool(answer.status.allowed)


def flat(rules: Iterable[dict[str, Any]]) -> set[Right]:
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule.get("apiGroups", [])
        for resource in rule.get("resources", [])
        for name in rule.get("resourceNames") or [""]
        for verb in rule["verbs"]
    }


def listed(manifests: Iterable[dict[str, Any]], account: str, namespace: str) -> set[Right]:
    """What the roles among the manifests give to an account in a namespace."""
    manifests = list(manifests)
    roles = {_key(one): one["rules"] for one in manifests if one["kind"] in ("Role", "ClusterRole")}
    found: set[Right] = set()
    for one in manifests:
        if one["kind"] not in ("RoleBinding", "ClusterRoleBinding") or not _counts(one, namespace):
            continue
        if account in {f"system:serviceaccount:{who['namespace']}:{who['name']}" for who in one["subjects"]}:
            where = one["metadata"].get("namespace", "") if one["roleRef"]["kind"] == "Role" else ""
            found |= flat(roles[one["roleRef"]["kind"], where, one["roleRef"]["name"]])
    return found


def _counts(binding: dict[str, Any], namespace: str) -> bool:
    return bool(binding["kind"] == "ClusterRoleBinding" or binding["metadata"].get("namespace") == namespace)


def _key(role: dict[str, Any]) -> tuple[str, str, str]:
    return role["kind"], role["metadata"].get("namespace", ""), role["metadata"]["name"]
