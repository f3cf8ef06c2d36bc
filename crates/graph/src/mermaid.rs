//! Renders a graph as a Mermaid flowchart.

use std::fmt::Write as _;

use crate::node::NodeKind;
use crate::{Graph, State};

impl<S: State> Graph<S> {
    /// Renders the graph as a Mermaid flowchart. The shape of a node shows the kind of its requests. Solid edges are unconditional
    /// transitions, dotted edges are branches.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut diagram = String::from("flowchart TD\n    START([START])\n");
        for (name, node) in &self.inner.nodes {
            let (open, close) = brackets(node.kind);
            add_line(&mut diagram, format_args!("{name}{open}{name}{close}"));
        }
        add_line(&mut diagram, format_args!("END([END])"));
        for edge in &self.inner.edges {
            let arrow = if edge.choose.is_some() { "-.->" } else { "-->" };
            for to in &edge.to {
                add_line(&mut diagram, format_args!("{} {arrow} {to}", edge.from));
            }
        }
        diagram
    }
}

fn add_line(diagram: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(diagram, "    {text}").expect("writing to a string cannot fail");
}

fn brackets(kind: NodeKind) -> (&'static str, &'static str) {
    match kind {
        NodeKind::Pure => ("[", "]"),
        NodeKind::Model => ("{{", "}}"),
        NodeKind::Tools => ("[[", "]]"),
        NodeKind::Activity => ("[/", "/]"),
        NodeKind::Approval => ("[\\", "/]"),
    }
}
