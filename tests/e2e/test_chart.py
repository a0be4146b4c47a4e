"""The chart on a real cluster: installed, tested, upgraded and removed, with rights that end where its roles end."""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.helm import CHART, FIRST_VALUES, Release, ask, everything, helm, installed, rendered, wait_until
from tests.e2e.kube import Cluster, Namespace
from tests.e2e.operating import install_crds
from tests.e2e.rights import held, listed, may

pytestmark = pytest.mark.e2e

CRD = "customresourcedefinition/streamjobs.millrace.io"
SWITCHES = [
    "operator.replicas=1",
    "lag.enabled=false",
    "lag.exporterNames=true",
    "alerts.tokenSecret=alerts",
    "alerts.withoutToken=true",
    "monitoring.scrapeAnnotations=false",
    "monitoring.podMonitor=true",
    "monitoring.prometheusRule=true",
    "monitoring.rulesConfigMap=false",
    "monitoring.dashboards=false",
    "networkPolicies.enabled=false",
    "userRoles=false",
    "crdUpgrade=false",
    "test.job=true",
    "watchNamespaces={one,two}",
]
OUTSIDE_OF_THE_ROLE = [
    ("get", "/secrets"),
    ("create", "/secrets"),
    ("delete", "/configmaps"),
    ("create", "/pods/exec"),
    ("get", "/pods/log"),
    ("get", "/nodes"),
    ("create", "/namespaces"),
    ("impersonate", "/serviceaccounts"),
    ("create", "/serviceaccounts/token"),
    ("create", "apps/deployments"),
    ("delete", "apps/statefulsets"),
    ("delete", "millrace.io/streamjobs"),
    ("create", "millrace.io/topics"),
    ("bind", "rbac.authorization.k8s.io/roles"),
    ("escalate", "rbac.authorization.k8s.io/roles"),
    ("create", "rbac.authorization.k8s.io/clusterroles"),
    ("update", "apiextensions.k8s.io/customresourcedefinitions"),
]


@pytest.fixture(scope="module")
def before(namespace: Namespace) -> list[str]:
    """What the namespace holds before the release comes."""
    install_crds()
    return everything(namespace=namespace.name)


@pytest.fixture(scope="module")
def release(namespace: Namespace, before: list[str]) -> Iterator[Release]:
    with installed("millrace", namespace.name, "-f", str(FIRST_VALUES)) as made:
        yield made


def test_lint_and_every_switch_render(cluster: Cluster) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))
    plain = rendered()
    for switch in SWITCHES:
        assert rendered("--set", switch) != plain, f"{switch} changes nothing"
    assert "additional properties" in helm("lint", str(CHART), "--set", "operator.replica=1", check=False).lower()


def test_one_namespace_is_served_without_any_right_beyond_it(cluster: Cluster) -> None:
    with (
        cluster.namespace("e2e-chart-one") as one,
        installed(
            "millrace-one", one.name, "-f", str(FIRST_VALUES), "--set", f"watchNamespaces={{{one.name}}}"
        ) as made,
    ):
        assert "Succeeded" in made.test()
        kinds = {name.partition("/")[0] for name in made.objects()}
        assert not {kind for kind in kinds if kind.startswith("cluster")}
        for component in ("operator", "lag"):
            assert held(made.account(component), one.name)
            assert not held(made.account(component), "default")


def test_helm_test_passes_where_only_restricted_pods_may_run(release: Release) -> None:
    assert "Succeeded" in release.test()


@pytest.mark.parametrize("component", ["operator", "lag"])
@pytest.mark.parametrize("place", ["home", "elsewhere"])
def test_accounts_hold_what_the_chart_lists_and_nothing_else(release: Release, component: str, place: str) -> None:
    namespace = release.namespace if place == "home" else "default"
    account = release.account(component)
    assert held(account, namespace) == listed(release.manifest(), account, namespace)


def test_what_is_outside_of_the_operators_role_is_refused(release: Release) -> None:
    account = release.account("operator")
    assert may(account, "patch", "apps/statefulsets", release.namespace)
    allowed = [asked for asked in OUTSIDE_OF_THE_ROLE if may(account, *asked, release.namespace)]
    assert allowed == []


def test_the_operator_cannot_hand_out_more_than_it_has(release: Release) -> None:
    role = ["create", "role", "greedy", "--verb=get", "--resource=secrets", "-n", release.namespace]
    assert "attempting to grant RBAC permissions not currently held" in ask(
        *role, "--as", release.account("operator"), check=False
    )


def test_an_upgrade_takes_the_older_values_and_renews_the_crds(release: Release) -> None:
    older = json.dumps([{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}])
    ask("patch", CRD, "--type=json", "-p", older)
    release.upgrade("-f", str(FIRST_VALUES), "--set", "operator.replicas=2")
    columns = json.loads(ask("get", CRD, "-o", "json"))["spec"]["versions"][0]["additionalPrinterColumns"]
    assert "Lag" in {column["name"] for column in columns}


def test_an_uninstalled_release_leaves_nothing_behind(release: Release, before: list[str]) -> None:
    assert release.objects()
    helm("uninstall", release.name, "-n", release.namespace, "--wait")
    wait_until(lambda: release.objects() == [], "everything of the release to go", 60)
    assert everything(namespace=release.namespace) == before
