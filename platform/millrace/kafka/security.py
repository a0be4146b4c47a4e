"""How a client proves who it is to the brokers, and whom it trusts: one value, made from the keys of a Secret.

What is there decides: `username` and `password` (and `mechanism`) give a login by SASL, `ca.crt` gives TLS, `tls.crt`
and `tls.key` beside it a client certificate. Nothing in here prints what it holds, and no repr shows it.
"""

import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millrace.errors import UserError

USERNAME, PASSWORD, MECHANISM = "username", "password", "mechanism"
CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
KEYS = (USERNAME, PASSWORD, MECHANISM, CA, CERTIFICATE, KEY)
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")  # the first is taken where none is named

# Kubernetes puts a new version of a mounted Secret beside the old one, and then moves this link: following it once
# gives either version whole, never half of each.
_SWAPPED = "..data"
_ATTEMPTS = 3
_PKCS8 = "-----BEGIN PRIVATE KEY-----"


@dataclass(frozen=True)
class Security:
    """A login, or TLS, or both. Empty texts: not there."""

    mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)

    @property
    def protocol(self) -> str:
        """Kafka's own name for the combination."""
        return ("SASL_" if self.mechanism else "") + ("SSL" if self.ca else "PLAINTEXT")

    def client_settings(self) -> dict[str, Any]:
        """For librdkafka."""
        login = {"sasl.mechanism": self.mechanism, "sasl.username": self.username, "sasl.password": self.password}
        trust = {"ssl.ca.pem": self.ca, "ssl.certificate.pem": self.certificate, "ssl.key.pem": self.key}
        return {"security.protocol": self.protocol} | {name: value for name, value in (login | trust).items() if value}

    def java_settings(self, folder: Path) -> dict[str, str]:
        """For Java clients: where in the folder each value lies, never the value, so that nothing shows or keeps it."""
        place = "${directory:" + str(folder) + ":%s}"
        found = {
            "security.protocol": self.protocol,
            "config.providers": "directory",
            "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
            "config.providers.directory.param.allowed.paths": str(folder),
        }
        if self.mechanism:
            login = f'username="{place % USERNAME}" password="{place % PASSWORD}"'
            found |= {
                "sasl.mechanism": self.mechanism,
                "sasl.jaas.config": f"{_module(self.mechanism)} required {login};",
            }
        if self.ca:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": place % CA}
        if self.certificate:
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.key": place % KEY}
            found["ssl.keystore.certificate.chain"] = place % CERTIFICATE
        return found

    def context(self) -> ssl.SSLContext | None:
        """For a socket of our own; None where there is no TLS."""
        if not self.ca:
            return None
        made = ssl.create_default_context(cadata=self.ca)
        if self.certificate:
            _load_chain(made, f"{self.certificate}\n{self.key}\n")
        return made


def parse_security(values: Mapping[str, str], where: str) -> Security:
    """The value behind a Secret's keys. `where` names the Secret in the sentence that says what is wrong with it."""
    given = {key: values.get(key, "") for key in KEYS}
    made = Security(
        mechanism=(given[MECHANISM].strip().upper() or MECHANISMS[0]) if given[USERNAME] else "",
        username=given[USERNAME],
        password=given[PASSWORD],
        ca=given[CA].strip(),
        certificate=given[CERTIFICATE].strip(),
        key=given[KEY].strip(),
    )
    wrong = _login_mistake(made, given) or _trust_mistake(made)
    if wrong:
        raise UserError(f"{where} cannot be used for Kafka: {wrong}")
    return made


def read_security(folder: Path | str) -> Security:
    """From a folder with one file for each key, as Kubernetes mounts a Secret. Read anew at each call."""
    place = Path(folder)
    if not place.is_dir():
        raise UserError(f"There is no folder {place} with Kafka's credentials: make it, with one file for each key.")
    for _ in range(_ATTEMPTS):
        version = (place / _SWAPPED).resolve() if (place / _SWAPPED).is_symlink() else place
        values = {key: _text(version / key, key) for key in KEYS if (version / key).is_file()}
        if version == place or (place / _SWAPPED).resolve() == version:
            break
    return parse_security(values, f"The folder {place}")


def _text(file: Path, key: str) -> str:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""  # swapped while we read; the next attempt sees the new version
    except (UnicodeDecodeError, OSError) as error:
        raise UserError(f"{key} cannot be read ({type(error).__name__}): it must be text that we may read.") from None


def _login_mistake(made: Security, given: Mapping[str, str]) -> str:
    if not made.username and not made.ca:
        return f"it holds neither {USERNAME} and {PASSWORD} nor {CA}."
    if bool(made.username) != bool(made.password):
        return f"{USERNAME} and {PASSWORD} must both be there, or none of them."
    if given[MECHANISM] and not made.username:
        return f"{MECHANISM} is there without {USERNAME} and {PASSWORD}."
    if made.mechanism and made.mechanism not in MECHANISMS:
        return f"{MECHANISM} must be one of {', '.join(MECHANISMS)}."
    if made.mechanism == "PLAIN" and not made.ca:
        return f"PLAIN would send the password for everyone to read: add {CA}, or choose SCRAM-SHA-512."
    for key in (USERNAME, PASSWORD):
        # the Java client reads them out of a quoted text that spans one line
        if any(character in '"\\' or not character.isprintable() for character in given[key]):
            return f"{key} has a quote, a backslash or a line break in it (`echo` adds one at the end; use `printf`)."
    return ""


def _trust_mistake(made: Security) -> str:
    if bool(made.certificate) != bool(made.key):
        return f"{CERTIFICATE} and {KEY} must both be there, or none of them."
    if made.certificate and not made.ca:
        return f"{CERTIFICATE} needs {CA} beside it: whom to trust."
    for key, text in ((CA, made.ca), (CERTIFICATE, made.certificate)):
        if text and not _is_certificate(text):
            return f"{key} holds no certificate in PEM form."
    if made.key and _PKCS8 not in made.key:
        return f"{KEY} must be an unencrypted key in PKCS#8 form: `openssl pkcs8 -topk8 -nocrypt` makes one."
    return ""


def _is_certificate(text: str) -> bool:
    try:
        ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        return False
    return True


def _module(mechanism: str) -> str:
    name = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return f"org.apache.kafka.common.security.{name}LoginModule"


def _load_chain(context: ssl.SSLContext, chain: str) -> None:
    """Python takes a key from a file only: one that nobody else can open and that is gone after."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("chain"), "w") as memory:
            memory.write(chain)
            memory.flush()
            return context.load_cert_chain(f"/proc/self/fd/{memory.fileno()}")
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(chain)
        file.flush()
        context.load_cert_chain(file.name)
