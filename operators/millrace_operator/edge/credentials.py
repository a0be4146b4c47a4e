"""How to reach the API server: from a pod by its ServiceAccount, from elsewhere by a kubeconfig."""

import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kopf
from kubernetes import client, config

from millrace.errors import UserError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_SECONDS = 60.0  # a mounted token is replaced by a new one while the pod runs, so it is read again


@dataclass
class Credentials:
    """Address, trust and proof of identity. The token may change over time."""

    server: str
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    token_file: Path | None = None
    token: str | None = None
    insecure: bool = False
    namespace: str = "default"
    in_cluster: bool = False
    _read_at: float = field(default=0.0, repr=False)

    def headers(self) -> dict[str, str]:
        if self.token_file is not None and time.monotonic() - self._read_at > TOKEN_SECONDS:
            self.token, self._read_at = self.token_file.read_text().strip(), time.monotonic()
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def context(self) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=self.ca_file)
        if self.cert_file:
            made.load_cert_chain(self.cert_file, self.key_file)
        if self.insecure:
            made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
        return made

    def for_kopf(self) -> kopf.ConnectionInfo:
        self.headers()
        return kopf.ConnectionInfo(
            server=self.server,
            ca_path=self.ca_file,
            insecure=self.insecure,
            token=self.token,
            certificate_path=self.cert_file,
            private_key_path=self.key_file,
            default_namespace=self.namespace,
        )


def find(kubeconfig: str | None = None, context: str | None = None) -> Credentials:
    """A kubeconfig that was asked for, the pod's own account, or the usual kubeconfig, in this order."""
    if kubeconfig is None and context is None and (ACCOUNT / "token").exists():
        return in_cluster()
    return from_kubeconfig(kubeconfig, context)


def in_cluster() -> Credentials:
    return Credentials(
        server="https://kubernetes.default.svc",
        ca_file=str(ACCOUNT / "ca.crt"),
        token_file=ACCOUNT / "token",
        namespace=(ACCOUNT / "namespace").read_text().strip(),
        in_cluster=True,
    )


def from_kubeconfig(path: str | None, context: str | None) -> Credentials:
    """Read by the official client, which knows the login plugins of the clouds."""
    loaded = client.Configuration()
    try:
        config.load_kube_config(path, context, client_configuration=loaded)
        _, active = config.list_kube_config_contexts(path)
    except config.ConfigException as error:
        raise UserError(f"No cluster to talk to ({error}): set KUBECONFIG or give --kubeconfig.") from None
    return _from_client(loaded, _namespace(active, context))


def _from_client(loaded: Any, namespace: str) -> Credentials:
    token = loaded.get_api_key_with_prefix("authorization") or loaded.get_api_key_with_prefix("BearerToken")
    return Credentials(
        server=loaded.host,
        ca_file=loaded.ssl_ca_cert,
        cert_file=loaded.cert_file,
        key_file=loaded.key_file,
        token=token.removeprefix("Bearer ") if token else None,
        insecure=not loaded.verify_ssl,
        namespace=namespace,
    )


def _namespace(active: Any, context: str | None) -> str:
    chosen = active if context is None else None
    return str(((chosen or {}).get("context") or {}).get("namespace") or "default")
