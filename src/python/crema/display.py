"""HTML tables of nets and solvers for notebooks."""

import html

CELL = "text-align:left;padding:1px 10px 1px 0"
NUMBER = "text-align:right;padding:1px 10px 1px 0"


def layer_rows(net):
    """A dict for each layer of a net: name, type, bottoms, tops, shapes of the tops, and the number of its
    parameters.
    """
    rows = []
    for index, name in enumerate(net._layer_names):
        layer = net.layers[index]
        tops = list(net.top_names[name])
        rows.append(
            dict(
                name=name,
                type=layer.type,
                bottoms=list(net.bottom_names[name]),
                tops=tops,
                shapes=[tuple(net.blobs[top].shape) for top in tops],
                parameters=sum(product(blob.shape) for blob in layer.blobs),
            )
        )
    return rows


def product(shape):
    count = 1
    for extent in shape:
        count *= int(extent)
    return count


def shape_text(shape):
    return " × ".join(str(extent) for extent in shape) or "1"


def parameter_count(net):
    """The number of a net's parameters; shared ones count once."""
    # A shared parameter has the same name in each of its layers.
    return sum({blob.name: product(blob.shape) for blobs in net.params.values() for blob in blobs}.values())


def table(columns, rows, foot=None):
    """HTML of a table. columns: (title, whether it has numbers); rows: lists of texts; foot: a text below."""
    head = "".join(
        '<th style="%s">%s</th>' % (NUMBER if number else CELL, html.escape(title)) for title, number in columns
    )
    body = "".join(
        "<tr>%s</tr>"
        % "".join(
            '<td style="%s">%s</td>' % (NUMBER if number else CELL, html.escape(text))
            for (_, number), text in zip(columns, row)
        )
        for row in rows
    )
    end = (
        ""
        if foot is None
        else '<tfoot><tr><td style="%s" colspan="%d"><b>%s</b></td></tr></tfoot>'
        % (CELL, len(columns), html.escape(foot))
    )
    return "<table><thead><tr>%s</tr></thead><tbody>%s</tbody>%s</table>" % (head, body, end)


def drawing_html(net):
    """A Net, NetSpec or NetParameter as a drawing in HTML; "" where it cannot be drawn."""
    from . import draw

    try:
        svg = draw.net_svg(net)
    except (OSError, ValueError):
        return ""
    return '<div style="max-height:40em;overflow:auto">%s</div>' % svg


def message_html(message):
    """A NetSpec or NetParameter as a drawing, else as text."""
    return drawing_html(message) or "<pre>%s</pre>" % html.escape(str(message))


def net_html(net):
    """A net as HTML: its drawing, and below it the table of its layers."""
    drawing = drawing_html(net)
    return drawing + "<details><summary>layers</summary>%s</details>" % net_table(net) if drawing else net_table(net)


def net_table(net):
    """A net as an HTML table: its layers with types, bottoms, tops, shapes and parameter counts."""
    columns = [(title, False) for title in ("layer", "type", "bottoms", "tops", "shape")] + [("parameters", True)]
    rows = [
        [
            row["name"],
            row["type"],
            ", ".join(row["bottoms"]),
            ", ".join(row["tops"]),
            "; ".join(shape_text(shape) for shape in row["shapes"]),
            "{:,}".format(row["parameters"]) if row["parameters"] else "",
        ]
        for row in layer_rows(net)
    ]
    title = net.name or "net"
    return table(
        columns, rows, "%s: %d layers, %s parameters" % (title, len(rows), "{:,}".format(parameter_count(net)))
    )


def solver_html(solver):
    """A solver as HTML: type, progress, rate and loss, and its net in a collapsible section."""
    facts = [("iteration", "%d of %d" % (solver.iter, solver.param.max_iter)), ("learning rate", "%.6g" % solver.lr)]
    loss = getattr(solver, "loss", None)
    if isinstance(loss, float) and loss == loss:
        facts.append(("loss", "%.6g" % loss))
    facts.append(("test nets", str(len(solver.test_nets))))
    return "<b>%s</b>%s<details><summary>net</summary>%s</details>" % (
        html.escape(type(solver).__name__),
        table([("", False), ("", True)], [list(fact) for fact in facts]),
        net_html(solver.net),
    )
