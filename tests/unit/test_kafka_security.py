"""From the keys of a Secret to what each client is told: pure, and no text of it ever shows a secret."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from millrace.errors import UserError
from millrace.kafka import scram
from millrace.kafka.clients import settings
from millrace.kafka.security import Security, parse_security, read_security

pytestmark = pytest.mark.unit

LOGIN = {"username": "shop", "password": "pencil-9"}
RFC_7677 = Security("SCRAM-SHA-256", "user", "pencil")
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """A certificate and its key, both in PEM form."""
    folder = tmp_path_factory.mktemp("pair")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=x"
    subprocess.run([*command.split(), "-keyout", "key", "-out", "crt"], cwd=folder, check=True, capture_output=True)
    return {name: (folder / name).read_text() for name in ("key", "crt")}


def test_what_is_there_decides_the_protocol(pair: Mapping[str, str]) -> None:
    trust = {"ca.crt": pair["crt"]}
    own = {"tls.crt": pair["crt"], "tls.key": pair["key"]}
    assert parse_security(LOGIN, "It").protocol == "SASL_PLAINTEXT"
    assert parse_security(trust, "It").protocol == "SSL"
    assert parse_security(LOGIN | trust, "It").protocol == "SASL_SSL"
    assert parse_security(trust | own, "It").protocol == "SSL"


def test_the_mechanism_is_the_strongest_unless_another_is_named() -> None:
    assert parse_security(LOGIN, "It").mechanism == "SCRAM-SHA-512"
    assert parse_security(LOGIN | {"mechanism": "scram-sha-256\n"}, "It").mechanism == "SCRAM-SHA-256"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "neither username and password nor ca.crt"),
        ({"username": "shop"}, "username and password must both"),
        ({"password": "secret-1"}, "neither username"),
        ({**LOGIN, "mechanism": "GSSAPI"}, "mechanism must be one of SCRAM-SHA-512, SCRAM-SHA-256, PLAIN"),
        ({**LOGIN, "mechanism": "PLAIN"}, "PLAIN would send the password for everyone to read"),
        ({**LOGIN, "password": "secret-1\n"}, "password has a quote, a backslash or a line break"),
        ({**LOGIN, "password": 'secret-1" x="'}, "password has a quote"),
        ({"ca.crt": "secret-1"}, "ca.crt holds no certificate in PEM form"),
        ({**LOGIN, "tls.crt": "secret-1"}, "tls.crt and tls.key must both"),
        ({**LOGIN, "tls.crt": "a", "tls.key": "secret-1"}, "tls.crt needs ca.crt"),
    ],
)
def test_a_mistake_is_a_sentence_that_names_the_key_and_no_value(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match="Secret kafka cannot be used for Kafka") as caught:
        parse_security(values, "Secret kafka")
    assert sentence in str(caught.value)
    assert "secret-1" not in str(caught.value)


def test_a_key_that_java_cannot_read_is_told_with_the_way_out(pair: Mapping[str, str]) -> None:
    old = pair["key"].replace("PRIVATE KEY", "EC PRIVATE KEY")
    with pytest.raises(UserError, match="openssl pkcs8 -topk8 -nocrypt"):
        parse_security({"ca.crt": pair["crt"], "tls.crt": pair["crt"], "tls.key": old}, "It")


def test_java_is_told_where_secrets_lie_and_never_what_they_are(pair: Mapping[str, str], tmp_path: Path) -> None:
    own = {"ca.crt": pair["crt"], "tls.crt": pair["crt"], "tls.key": pair["key"]}
    told = parse_security(LOGIN | own, "It").java_settings(tmp_path)
    assert told["security.protocol"] == "SASL_SSL"
    assert f'password="${{directory:{tmp_path}:password}}"' in told["sasl.jaas.config"]
    assert told["ssl.truststore.certificates"] == f"${{directory:{tmp_path}:ca.crt}}"
    assert not any(secret in str(told) for secret in ("pencil-9", "BEGIN", "shop"))


def test_librdkafka_is_told_all_of_it(pair: Mapping[str, str]) -> None:
    made = parse_security(LOGIN | {"ca.crt": pair["crt"]}, "It")
    told = settings("kafka:9093", made, **{"group.id": "g"})
    assert told["security.protocol"] == "SASL_SSL"
    assert told["sasl.password"] == "pencil-9"
    assert told["ssl.ca.pem"] == pair["crt"].strip()
    assert "ssl.key.pem" not in told
    assert "security.protocol" not in settings("kafka:9092")


def test_no_text_of_the_value_shows_a_secret(pair: Mapping[str, str]) -> None:
    own = {"ca.crt": pair["crt"], "tls.crt": pair["crt"], "tls.key": pair["key"]}
    shown = repr(parse_security(LOGIN | own, "It"))
    assert "shop" in shown
    assert "pencil-9" not in shown
    assert "BEGIN" not in shown


def test_a_folder_is_read_anew_each_time(tmp_path: Path) -> None:
    for name, value in LOGIN.items():
        (tmp_path / name).write_text(value)
    before = read_security(tmp_path)
    (tmp_path / "password").write_text("another")
    assert before != read_security(tmp_path)
    with pytest.raises(UserError, match="There is no folder"):
        read_security(tmp_path / "nowhere")


def test_a_mounted_secret_is_read_from_the_version_that_its_link_names(tmp_path: Path) -> None:
    for version in ("..1", "..2"):
        (tmp_path / version).mkdir()
        for name, value in LOGIN.items():
            (tmp_path / version / name).write_text(value + version[2:])
    (tmp_path / "..data").symlink_to("..1")
    before = read_security(tmp_path)
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert (before.username[-1], read_security(tmp_path).username[-1]) == ("1", "2")


def test_a_client_certificate_is_taken_without_a_file_of_ours(pair: Mapping[str, str]) -> None:
    made = Security(ca=pair["crt"], certificate=pair["crt"], key=pair["key"])
    assert made.context() is not None
    assert Security("SCRAM-SHA-512", "a", "b").context() is None


def test_scram_gives_the_messages_of_its_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: "rOprNGfwEbeRWgbNEkqO")
    steps = scram.conversation(RFC_7677)
    assert next(steps) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert steps.send(CHALLENGE).endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    with pytest.raises(StopIteration):
        steps.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense", b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", CHALLENGE + b"0000000"]
)
def test_scram_believes_no_stranger(answer: bytes) -> None:
    steps = scram.conversation(RFC_7677)
    next(steps)
    with pytest.raises(scram.RefusedError, match="is not SCRAM"):
        steps.send(answer)


def test_scram_refuses_a_broker_that_does_not_know_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: "rOprNGfwEbeRWgbNEkqO")
    steps = scram.conversation(RFC_7677)
    next(steps)
    steps.send(CHALLENGE)
    with pytest.raises(scram.RefusedError, match="does not know the password"):
        steps.send(b"v=AAAA")
