//! Rendering a graph as a Mermaid flowchart.

use std::fmt::Write as _;

use crate::node::Shape;
use crate::{Graph, State};

impl<S: State> Graph<S> {
    /// Renders the graph as a Mermaid flowchart: node shapes by the kind of request, solid edges for unconditional
    /// transitions, dotted edges for branches.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut chart = String::from("flowchart TD\n    START([START])\n");
        for (name, node) in &self.inner.nodes {
            let (open, close) = brackets(node.shape);
            line(&mut chart, format_args!("{name}{open}{name}{close}"));
        }
        line(&mut chart, format_args!("END([END])"));
        for edge in &self.inner.edges {
            let arrow = if edge.choose.is_some() { "-.->" } else { "-->" };
            for to in &edge.to {
                line(&mut chart, format_args!("{} {arrow} {to}", edge.from));
            }
        }
        chart
    }
}

fn line(chart: &mut String, text: std::fmt::Arguments<'_>) {
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
