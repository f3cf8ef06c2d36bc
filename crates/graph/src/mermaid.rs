//! Renders a graph as a Mermaid flowchart.

use std::fmt::Write as _;

use crate::node::Shape;
use crate::{Graph, State};

impl<S: State> Graph<S> {
    /// Renders the graph as a Mermaid flowchart. The shape of a node shows the kind of its requests. Solid edges are unconditional
    /// transitions, dotted edges are branches.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut chart = String::from("flowchart TD\n    START([START])\n");
        for (name, node) in &self.inner.nodes {
            let (open, close) = brackets(node.shape);
            add_line(&mut chart, format_args!("{name}{open}{name}{close}"));
        }
        add_line(&mut chart, format_args!("END([END])"));
        for edge in &self.inner.edges {
            let arrow = if edge.choose.is_some() { "-.->" } else { "-->" };
            for to in &edge.to {
                add_line(&mut chart, format_args!("{} {arrow} {to}", edge.from));
            }
        }
        chart
    }
}

fn add_line(chart: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(chart, "    {text}").expect("writing to a string cannot fail");
}

fn brackets(shape: Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::Pure => ("[", "]"),
        Shape::Model => ("{{", "}}"),
        Shape::Tools => ("[[", "]]"),
        Shape::Activity => ("[/", "/]"),
        Shape::Person => ("[\\", "/]"),
    }
}
