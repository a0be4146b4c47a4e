"""Boards as Grafana's own model, built with its SDK, and as the JSON that it imports. No query is written here."""

import json
from collections.abc import Iterable

from grafana_foundation_sdk.builders import bargauge, common, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import dashboard as builder
from grafana_foundation_sdk.builders import prometheus as source
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from millrace_dashboards.alerts import Alert, Links
from millrace_dashboards.boards import Board, Panel, Query, Variable

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
SPANS = {"small": (6, 4), "third": (8, 8), "half": (12, 8), "full": (24, 8)}
LETTERS = "ABCDEFGH"  # Grafana calls the queries of a panel so

AnyPanel = timeseries.Panel | stat.Panel | bargauge.Panel | table.Panel | statetimeline.Panel


def to_json(board: Board, boards: Iterable[Board], alerts: Iterable[Alert], links: Links) -> str:
    """The dashboard as Grafana imports it. Panels link to the page of each alert that points at them."""
    made = _dashboard(board)
    for variable in board.variables:
        made.with_variable(_variable(variable))
    made.with_variable(builder.ConstantVariable("runbooks").label("Address of the runbooks").value(links.runbooks))
    for other in boards:
        if other.uid != board.uid:
            made.link(_board_link(other))
    mine = [alert for alert in alerts if alert.board.uid == board.uid]
    for row in board.rows:
        made.with_row(builder.Row(row.title).id(board.number(row.panels[0]) - 1))
        for panel in row.panels:
            made.with_panel(_panel(panel, board.number(panel), [a for a in mine if a.panel == panel]))
    return json.dumps(made.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _dashboard(board: Board) -> builder.Dashboard:
    return (
        builder.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags(["millrace"])
        .readonly()
        .time("now-1h", "now")
        .refresh("30s")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(builder.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )


def _variable(variable: Variable) -> builder.QueryVariable:
    inside = f'{{{variable.within}=~"${variable.within}"}}' if variable.within else ""
    made = (
        builder.QueryVariable(variable.label)
        .label(variable.label.capitalize())
        .datasource(SOURCE)
        .query(f"label_values({variable.metric.name}{inside}, {variable.label})")
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(variable.several)
        .include_all(variable.several)
    )
    return made.current(model.VariableOption(text="All", value="$__all")) if variable.several else made


def _board_link(board: Board) -> builder.DashboardLink:
    return (
        builder.DashboardLink(board.title)
        .type(model.DashboardLinkType.LINK)
        .url(f"/d/{board.uid}")
        .include_vars(True)
        .keep_time(True)
    )


def _runbook_link(alert: Alert) -> builder.DashboardLink:
    return (
        builder.DashboardLink(f"What to do: {alert.name}")
        .type(model.DashboardLinkType.LINK)
        .url(f"${{runbooks}}/{alert.name}.md")
        .target_blank(True)
    )


def _panel(panel: Panel, number: int, alerts: list[Alert]) -> AnyPanel:
    width, height = SPANS[panel.size]
    made = (
        _shape(panel)
        .id(number)
        .title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .unit(panel.unit)
        .span(width)
        .height(height)
        .links([_runbook_link(alert) for alert in alerts])
    )
    for letter, query in zip(LETTERS, panel.queries, strict=False):
        made.with_target(_target(query, letter, panel))
    return made


def _shape(panel: Panel) -> AnyPanel:
    match panel.kind:
        case "number":
            mode = options.BigValueTextMode.VALUE_AND_NAME if "{{" in panel.queries[0].legend else None
            return stat.Panel().text_mode(mode or options.BigValueTextMode.VALUE)
        case "bars":
            return bargauge.Panel().orientation(options.VizOrientation.HORIZONTAL).min(0).max(1)
        case "table":
            hidden = model.DataTransformerConfig(
                id_val="organize", options={"excludeByName": {"Time": True, "Value": True}}
            )
            return table.Panel().with_transformation(hidden)
        case "states":
            return statetimeline.Panel().show_value(options.VisibilityMode.NEVER)
        case _:
            return _lines(stacked=panel.kind == "stack")


def _lines(*, stacked: bool) -> timeseries.Panel:
    legend = common.VizLegendOptions().display_mode(options.LegendDisplayMode.LIST).show_legend(True)
    panel = timeseries.Panel().legend(legend.placement(options.LegendPlacement.BOTTOM)).min(0)
    if not stacked:
        return panel
    return panel.fill_opacity(40).stacking(common.StackingConfig().mode(options.StackingMode.NORMAL).group("A"))


def _target(query: Query, letter: str, panel: Panel) -> source.Dataquery:
    target = source.Dataquery().expr(query.expr).ref_id(letter).datasource(SOURCE).legend_format(query.legend)
    if panel.kind == "table":
        target.format(PromQueryFormat.TABLE)
    return target.instant() if query.instant else target.range()
