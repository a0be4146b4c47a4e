"""The board of topics: whether each is as declared, and who reads it how far behind."""

from millrace import metrics as m
from millrace_dashboards.boards import RATE_WINDOW, Board, Panel, Query, Row, Variable, chosen
from millrace_dashboards.promql import PER_JOB, PER_TOPIC, agg, rate

NAME = "{{namespace}}/{{topic}}"
READER = "{{topic}}, read by {{job}}"

READY = Panel(
    "As declared",
    "1 when the topic in Kafka is what its resource says.",
    (Query(agg("min", "namespace, topic", chosen(m.TOPIC_READY)), NAME),),
    kind="states",
)
PARTITIONS = Panel(
    "Partitions",
    "Declared and there.",
    (
        Query(agg("max", "namespace, topic", chosen(m.TOPIC_DECLARED_PARTITIONS)), NAME + " declared"),
        Query(agg("max", "namespace, topic", chosen(m.TOPIC_PARTITIONS)), NAME),
    ),
)
HELD = Panel(
    "Retention held",
    "1 while the operator keeps records longer than declared, because a job would lose them.",
    (Query(agg("max", "namespace, topic", chosen(m.TOPIC_RETENTION_HELD)), NAME),),
    kind="states",
)
INFO = Panel(
    "Topics",
    "The resource, its name in Kafka and its cleanup policy.",
    (Query(agg("max", "namespace, topic, kafka_topic, cleanup", chosen(m.TOPIC_INFO)), NAME, instant=True),),
    kind="table",
    size="full",
)
LAG = Panel(
    "Readers behind, in seconds",
    "Per topic and job, by the name in Kafka.",
    (Query(f"topk(10, {agg('max', PER_TOPIC, chosen(m.JOB_LAG_SECONDS))})", READER),),
    unit="s",
)
MARGIN = Panel(
    "Time until data is lost",
    "Per topic and job: the ten nearest to deletion.",
    (Query(f"bottomk(10, {agg('min', PER_TOPIC, chosen(m.JOB_RETENTION_MARGIN))})", READER),),
    unit="s",
)
READ = Panel(
    "Events read",
    "Per topic and job.",
    (Query(f"topk(10, {agg('sum', PER_TOPIC, rate(chosen(m.JOB_EVENTS_READ), RATE_WINDOW))})", READER),),
    unit="eps",
)
GROUPS = Panel(
    "Readers",
    "Each job with its consumer group and what it does with stragglers.",
    (Query(agg("max", f"{PER_JOB}, group, stragglers", chosen(m.JOB_INFO)), "{{job}}", instant=True),),
    kind="table",
    size="full",
)

BOARD = Board(
    uid="millrace-topics",
    title="Millrace: topics",
    description="Topics as declared and as they are, and their readers.",
    variables=(Variable("namespace", m.JOB_INFO), Variable("job", m.JOB_INFO, within="namespace")),
    rows=(Row("Declared and there", (READY, PARTITIONS, HELD, INFO)), Row("Readers", (LAG, MARGIN, READ, GROUPS))),
)
