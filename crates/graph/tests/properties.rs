//! Properties that random graphs have whatever the order of events.

use proptest::prelude::*;
use threadkeep_core::{JsonText, Map, ToolCall};
use threadkeep_graph::{
    END, Effect, Event, Failure, Graph, GraphBuilder, Input, Journal, Node, Outcome, Output, START, ToolOutcome, state,
};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

state! {
    /// A state with one field for each reducer; `replace` and `merge` depend on the order of updates.
    struct TestState (update TestStateUpdate) {
        append results: String,
        replace last: String,
        optional first_answered: String,
        merge by_node,
    }
}

/// The description of a random graph.
#[derive(Clone, Debug)]
struct GraphPlan {
    nodes: Vec<NodePlan>,
    start: Vec<usize>,
}

#[derive(Clone, Debug)]
struct NodePlan {
    /// The number of tool calls on even and odd visits.
    calls: [usize; 2],
    /// The indexes of the target nodes. An index equal to the number of nodes means END.
    to: Vec<usize>,
    /// Whether all targets run next; otherwise the state selects one of them.
    is_fan_out: bool,
    handles_failures: bool,
}

fn graph_plan() -> impl Strategy<Value = GraphPlan> {
    (1..=NAMES.len()).prop_flat_map(|count| {
        let to = prop::collection::vec(0..=count, 1..4);
        let node = ([0..3_usize, 0..3_usize], to, any::<bool>(), any::<bool>());
        let node = node.prop_map(|(calls, to, is_fan_out, handles_failures)| NodePlan {
            calls,
            to,
            is_fan_out,
            handles_failures,
        });
        (prop::collection::vec(node, count), 0..count).prop_map(|(mut nodes, start)| {
            // Each node leads to the next one, so that all are reachable.
            nodes.iter_mut().enumerate().for_each(|(index, node)| node.to[0] = index + 1);
            GraphPlan { nodes, start: vec![0, start] }
        })
    })
}

impl GraphPlan {
    fn name(&self, index: usize) -> &'static str {
        if index < self.nodes.len() { NAMES[index] } else { END }
    }

    fn graph(&self) -> Graph<TestState> {
        let mut builder: GraphBuilder<TestState> = Graph::builder("random", 1, |_| TestState::default()).max_steps(12);
        for (index, plan) in self.nodes.iter().enumerate() {
            builder = builder.node(NAMES[index], self.node(index));
            if plan.is_fan_out {
                let to: std::collections::BTreeSet<usize> = plan.to.iter().copied().collect();
                for to in to {
                    builder = builder.edge(NAMES[index], self.name(to));
                }
            } else {
                let targets: Vec<&'static str> = plan.to.iter().map(|to| self.name(*to)).collect();
                let padded = [targets[0], targets[targets.len() / 2], targets[targets.len() - 1]];
                builder =
                    builder.branch(NAMES[index], padded, move |state: &TestState| padded[state.results.len() % 3]);
            }
        }
        for start in &self.start {
            builder = builder.edge(START, NAMES[*start]);
        }
        builder.finish(|state| Output::reply(state.results.join(" "))).expect("the graph is valid")
    }

    fn node(&self, index: usize) -> Node<TestState> {
        let (name, calls) = (NAMES[index], self.nodes[index].calls);
        let ask = move |state: &TestState| {
            let visits = state.by_node.get(name).and_then(|visits| visits.as_u64()).unwrap_or(0);
            let count = calls[usize::from(!visits.is_multiple_of(2))];
            let call = |number| ToolCall {
                id: format!("{name}{visits}.{number}"),
                name: "look".to_owned(),
                arguments: JsonText::of(&state.last).expect("strings encode as JSON"),
            };
            (0..count).map(call).collect()
        };
        let take = move |state: &TestState, results: Vec<ToolOutcome>| {
            let visits = state.by_node.get(name).and_then(|visits| visits.as_u64()).unwrap_or(0);
            let results: Vec<String> = results.into_iter().map(|result| result.output).collect();
            TestStateUpdate {
                last: results.last().cloned(),
                first_answered: results.first().cloned(),
                results,
                by_node: Map::from_iter([(name.to_owned(), (visits + 1).into())]),
            }
        };
        let node = Node::tools(ask, take);
        if !self.nodes[index].handles_failures {
            return node;
        }
        node.or_else(move |_, failure| TestStateUpdate {
            last: Some(failure.code.clone()),
            ..TestStateUpdate::default()
        })
    }
}

/// Returns the event that answers an effect. It depends only on the effect.
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

/// The result of a run: its final state and all effects in the order of the requests.
#[derive(Debug, PartialEq)]
struct RunResult {
    state: TestState,
    effects: Vec<Effect>,
}

/// Runs to the end, answering outstanding requests in the order given by `choices`.
fn drive(graph: &Graph<TestState>, mut choices: impl Iterator<Item = usize>) -> (RunResult, Journal) {
    let mut run = graph.start(&Input::default()).expect("all requests encode");
    let mut journal = Journal::new("random", 1);
    let (mut waiting, mut effects) = (Vec::new(), Vec::new());
    loop {
        let new = run.take_effects();
        effects.extend(new.clone());
        if let Some(Effect::Finish(_)) = new.last() {
            return (RunResult { state: run.state().clone(), effects }, journal);
        }
        waiting.extend(new);
        let chosen = waiting.remove(choices.next().expect("choices is infinite") % waiting.len());
        let event = answer(&chosen);
        journal.events.push(event.clone());
        run.handle_event(event).expect("the request is outstanding");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_order_of_outcomes_does_not_change_the_state(graph_plan in graph_plan(), order in prop::collection::vec(0..100_usize, 1..20)) {
        let graph = graph_plan.graph();
        let (in_order, _) = drive(&graph, std::iter::repeat(0));
        let (shuffled, _) = drive(&graph, order.into_iter().cycle());
        prop_assert_eq!(in_order, shuffled);
    }

    #[test]
    fn a_journal_replays_to_the_same_effects(graph_plan in graph_plan(), order in prop::collection::vec(0..100_usize, 1..20)) {
        let graph = graph_plan.graph();
        let (result, journal) = drive(&graph, order.into_iter().cycle());
        let written = serde_json::to_string(&journal).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Journal>(&written).unwrap(), &journal);
        let mut live = graph.start(&Input::default()).unwrap();
        let mut waiting = live.take_effects();
        for length in 0..=journal.events.len() {
            let truncated = Journal { events: journal.events[..length].to_vec(), ..journal.clone() };
            let mut replayed = graph.replay(&Input::default(), &truncated).unwrap();
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
        prop_assert_eq!(live.state(), &result.state);
        prop_assert_eq!(live.take_effects(), Vec::new());
    }
}
