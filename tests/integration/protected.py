"""A real broker that asks for TLS and a login, certificates of its own, and Secrets as Kubernetes mounts them."""

import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from millrace.kafka.clients import admin

SECONDS = 60.0
_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


def make_authority(folder: Path) -> Path:
    """A certificate authority of our own; returns its certificate. Its key lies beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    _openssl("req", "-x509", *_NEW_KEY, "-subj", "/CN=millrace tests", "-keyout", folder / "ca.key",
             "-out", folder / "ca.crt")  # fmt: skip
    return folder / "ca.crt"


def make_identity(folder: Path, address: str = "127.0.0.1") -> Path:
    """Key and certificate of a broker at an address, signed by the folder's authority, in one file."""
    key, request, certificate = folder / "broker.key", folder / "broker.csr", folder / "broker.crt"
    _openssl("req", "-new", *_NEW_KEY[:-2], "-subj", "/CN=broker", "-keyout", key, "-out", request)
    (folder / "names").write_text(f"subjectAltName=IP:{address}\n")
    signer = ("-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", "2")
    _openssl("x509", "-req", "-in", request, *signer, "-extfile", folder / "names", "-out", certificate)
    whole = folder / "broker.pem"
    whole.write_text(key.read_text() + certificate.read_text())
    return whole


def set_password(bootstrap: str, user: str, password: str) -> None:
    """Make the user, or change his password, as whoever runs the brokers does."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    _alter(bootstrap, UserScramCredentialUpsertion(user, info, password.encode()))


def remove_user(bootstrap: str, user: str) -> None:
    _alter(bootstrap, UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512))


class MountedSecret:
    """A folder in which all files change at once, by one link that is moved: so the kubelet does it."""

    def __init__(self, folder: Path, values: Mapping[str, str]) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.put(values)

    def put(self, values: Mapping[str, str]) -> None:
        version = self.folder / f"..{uuid.uuid4().hex}"
        version.mkdir()
        for key, value in values.items():
            (version / key).write_text(value)
            if not (self.folder / key).is_symlink():
                (self.folder / key).symlink_to(f"..data/{key}")
        (self.folder / "..new").symlink_to(version.name)
        (self.folder / "..new").rename(self.folder / "..data")


def _alter(bootstrap: str, change: UserScramCredentialUpsertion | UserScramCredentialDeletion) -> None:
    client = admin(bootstrap)
    for future in client.alter_user_scram_credentials([change]).values():
        future.result(timeout=SECONDS)


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
