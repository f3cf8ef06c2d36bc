//! Drawing a graph as Mermaid, which many programs show as a picture.

use std::fmt::Write as _;

use crate::node::Shape;
use crate::{Graph, State};

impl<S: State> Graph<S> {
    /// Draws the graph: nodes by what they ask for, solid edges for what always follows, dotted ones for what is chosen.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut drawing = String::from("flowchart TD\n    START([START])\n");
        for (name, node) in &self.inner.nodes {
            let (open, close) = brackets(node.shape);
            line(&mut drawing, format_args!("{name}{open}{name}{close}"));
        }
        line(&mut drawing, format_args!("END([END])"));
        for edge in &self.inner.edges {
            let arrow = if edge.choose.is_some() { "-.->" } else { "-->" };
            for to in &edge.to {
                line(&mut drawing, format_args!("{} {arrow} {to}", edge.from));
            }
        }
        drawing
    }
}

fn line(drawing: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(drawing, "    {text}").expect("writing to a text cannot fail");
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
