//! What holds for every graph and every order of events.

use proptest::prelude::*;
use threadkeep_core::{JsonText, Map, ToolCall};
use threadkeep_graph::{
    END, Effect, Event, Failure, Graph, GraphBuilder, Input, Journal, Node, Outcome, Output, START, ToolOutcome, state,
};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

state! {
    /// A state with one field for each rule; `replace` and `merge` depend on the order of updates.
    struct Seen (update SeenUpdate) {
        append results: String,
        replace last: String,
        set first_answered: String,
        merge by_node,
    }
}

/// How a random graph is drawn.
#[derive(Clone, Debug)]
struct Drawing {
    nodes: Vec<DrawnNode>,
    start: Vec<usize>,
}

#[derive(Clone, Debug)]
struct DrawnNode {
    /// How many tools it calls, by how often it was here.
    calls: [usize; 2],
    /// Where it leads; one past the last node is the end.
    to: Vec<usize>,
    /// Whether it leads to all of them, or to one by the state.
    is_fan_out: bool,
    recovers: bool,
}

fn drawing() -> impl Strategy<Value = Drawing> {
    (1..=NAMES.len()).prop_flat_map(|count| {
        let to = prop::collection::vec(0..=count, 1..4);
        let node = ([0..3_usize, 0..3_usize], to, any::<bool>(), any::<bool>());
        let node = node.prop_map(|(calls, to, is_fan_out, recovers)| DrawnNode { calls, to, is_fan_out, recovers });
        (prop::collection::vec(node, count), 0..count).prop_map(|(mut nodes, start)| {
            // Each node leads to the next one, so that all are reached.
            nodes.iter_mut().enumerate().for_each(|(index, node)| node.to[0] = index + 1);
            Drawing { nodes, start: vec![0, start] }
        })
    })
}

impl Drawing {
    fn name(&self, index: usize) -> &'static str {
        if index < self.nodes.len() { NAMES[index] } else { END }
    }

    fn graph(&self) -> Graph<Seen> {
        let mut builder: GraphBuilder<Seen> = Graph::draw("random", 1, |_| Seen::default()).max_steps(12);
        for (index, drawn) in self.nodes.iter().enumerate() {
            builder = builder.node(NAMES[index], self.node(index));
            if drawn.is_fan_out {
                let to: std::collections::BTreeSet<usize> = drawn.to.iter().copied().collect();
                for to in to {
                    builder = builder.edge(NAMES[index], self.name(to));
                }
            } else {
                let targets: Vec<&'static str> = drawn.to.iter().map(|to| self.name(*to)).collect();
                let padded = [targets[0], targets[targets.len() / 2], targets[targets.len() - 1]];
                builder = builder.branch(NAMES[index], padded, move |state: &Seen| padded[state.results.len() % 3]);
            }
        }
        for start in &self.start {
            builder = builder.edge(START, NAMES[*start]);
        }
        builder.finish(|state| Output::reply(state.results.join(" "))).expect("it is drawn to its end")
    }

    fn node(&self, index: usize) -> Node<Seen> {
        let (name, calls) = (NAMES[index], self.nodes[index].calls);
        let ask = move |state: &Seen| {
            let been = state.by_node.get(name).and_then(|been| been.as_u64()).unwrap_or(0);
            let count = calls[usize::from(!been.is_multiple_of(2))];
            let call = |number| ToolCall {
                id: format!("{name}{been}.{number}"),
                name: "look".to_owned(),
                arguments: JsonText::of(&state.last).expect("a text is JSON"),
            };
            (0..count).map(call).collect()
        };
        let take = move |state: &Seen, results: Vec<ToolOutcome>| {
            let been = state.by_node.get(name).and_then(|been| been.as_u64()).unwrap_or(0);
            let results: Vec<String> = results.into_iter().map(|result| result.output).collect();
            SeenUpdate {
                last: results.last().cloned(),
                first_answered: results.first().cloned(),
                results,
                by_node: Map::from_iter([(name.to_owned(), (been + 1).into())]),
            }
        };
        let node = Node::tools(ask, take);
        if !self.nodes[index].recovers {
            return node;
        }
        node.or_else(move |_, failure| SeenUpdate { last: Some(failure.code.clone()), ..SeenUpdate::default() })
    }
}

/// What the world answers: the same for the same request, whenever it is asked.
fn answer(effect: &Effect) -> Event {
    let Effect::CallTool { request, call, .. } = effect else { panic!("{effect:?}") };
    let outcome = if request.0 % 11 == 10 {
        Outcome::Failed(Failure::new("broken", "the tool broke"))
    } else {
        let output = format!("{}({})", call.id, call.arguments);
        let (is_error, value, sources) = (request.0 % 3 == 2, None, Vec::new());
        Outcome::Tool(ToolOutcome { call_id: call.id.clone(), output, is_error, value, sources })
    };
    Event::Finished { request: *request, outcome }
}

/// What a run did: the final state, all effects in the order of asking, and its journal.
#[derive(Debug, PartialEq)]
struct Done {
    state: Seen,
    effects: Vec<Effect>,
}

/// Runs to the end, answering what is outstanding in the order that `choices` says.
fn drive(graph: &Graph<Seen>, mut choices: impl Iterator<Item = usize>) -> (Done, Journal) {
    let mut run = graph.start(&Input::default()).expect("all nodes can ask");
    let mut journal = Journal::new("random", 1);
    let (mut waiting, mut effects) = (Vec::new(), Vec::new());
    loop {
        let new = run.take_effects();
        effects.extend(new.clone());
        if let Some(Effect::Finish(_)) = new.last() {
            return (Done { state: run.state().clone(), effects }, journal);
        }
        waiting.extend(new);
        let chosen = waiting.remove(choices.next().expect("endless") % waiting.len());
        let event = answer(&chosen);
        journal.events.push(event.clone());
        run.handle_event(event).expect("it was asked");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_interleaving_of_results_gives_the_same_state(drawing in drawing(), order in prop::collection::vec(0..100_usize, 1..20)) {
        let graph = drawing.graph();
        let (in_order, _) = drive(&graph, std::iter::repeat(0));
        let (shuffled, _) = drive(&graph, order.into_iter().cycle());
        prop_assert_eq!(in_order, shuffled);
    }

    #[test]
    fn a_journal_replays_to_the_same_effects(drawing in drawing(), order in prop::collection::vec(0..100_usize, 1..20)) {
        let graph = drawing.graph();
        let (done, journal) = drive(&graph, order.into_iter().cycle());
        let written = serde_json::to_string(&journal).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Journal>(&written).unwrap(), &journal);
        let mut live = graph.start(&Input::default()).unwrap();
        let mut waiting = live.take_effects();
        for length in 0..=journal.events.len() {
            let cut = Journal { events: journal.events[..length].to_vec(), ..journal.clone() };
            let mut replayed = graph.replay(&Input::default(), &cut).unwrap();
            prop_assert_eq!(replayed.state(), live.state());
            prop_assert_eq!(&replayed.take_effects(), &waiting);
            if let Some(event) = journal.events.get(length) {
                let Event::Finished { request, .. } = event else { panic!("{event:?}") };
                waiting.retain(|effect| effect.request() != Some(*request));
                live.handle_event(event.clone()).unwrap();
                let new = live.take_effects();
                if let Some(Effect::Finish(_)) = new.last() {
                    waiting.clear();
                }
                waiting.extend(new);
            }
        }
        prop_assert_eq!(live.state(), &done.state);
        prop_assert_eq!(live.take_effects(), Vec::new());
    }
}
