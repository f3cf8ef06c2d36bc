//! Runs of small hand-written graphs.

use threadkeep_core::{ChatAnswer, ChatMessage, Finish, JsonText, Part, Role, ToolCall};
use threadkeep_graph::{
    Decision, END, Effect, Event, Failure, Graph, GraphError, Input, Journal, ModelRequest, Node, Outcome, OutcomeKind,
    Output, RequestId, START, ToolOutcome, state,
};

state! {
    /// The state of a turn.
    struct Chat (update ChatUpdate) {
        append messages: ChatMessage,
        replace notes: String,
    }
}

fn update_with_message(parts: Vec<Part>, role: Role) -> ChatUpdate {
    ChatUpdate { messages: vec![ChatMessage { role, author: None, parts, seq: None }], ..ChatUpdate::default() }
}

fn calls(state: &Chat) -> Vec<ToolCall> {
    let parts = state.messages.last().into_iter().flat_map(|message| &message.parts);
    parts.filter_map(|part| if let Part::ToolCall(call) = part { Some(call.clone()) } else { None }).collect()
}

fn results(_: &Chat, results: Vec<ToolOutcome>) -> ChatUpdate {
    let message = |result: ToolOutcome| {
        let ToolOutcome { call_id, output, is_error, .. } = result;
        let result = threadkeep_core::ToolResult { call_id, output, is_error };
        ChatMessage { role: Role::Tool, author: None, parts: vec![Part::ToolResult(result)], seq: None }
    };
    ChatUpdate { messages: results.into_iter().map(message).collect(), ..ChatUpdate::default() }
}

/// Creates a graph in which a model calls tools until it answers (S2.07).
fn agent_and_tools() -> Graph<Chat> {
    Graph::<Chat>::builder("react", 3, |_| Chat::default())
        .node(
            "agent",
            Node::model(
                |state: &Chat| ModelRequest::reply(&state.messages),
                |_, answer| update_with_message(answer.parts, Role::Assistant),
            ),
        )
        .node("tools", Node::tools(calls, results))
        .edge(START, "agent")
        .branch("agent", ["tools", END], |state| if calls(state).is_empty() { END } else { "tools" })
        .edge("tools", "agent")
        .messages(|state| &state.messages)
        .max_steps(5)
        .finish(|state| Output::reply(format!("{} messages", state.messages.len())))
        .expect("the graph is valid")
}

fn answer(parts: Vec<Part>) -> ChatAnswer {
    ChatAnswer { parts, finish: Finish::Stop, model: "scripted".to_owned(), usage: None }
}

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "look".to_owned(),
        arguments: JsonText::new("{}").expect("JSON"),
    })
}

fn outcome(id: &str) -> ToolOutcome {
    let (call_id, output) = (id.to_owned(), format!("{id} seen"));
    ToolOutcome { call_id, output, is_error: false, value: None, sources: Vec::new() }
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

// S2.06, S2.07
#[test]
fn a_model_calls_tools_until_it_answers() {
    let graph = agent_and_tools();
    let mut run = graph.start(&Input::question("what is there?")).unwrap();
    let effects = run.take_effects();
    assert!(matches!(&effects[..], [Effect::CallModel { request: RequestId(0), node: "agent", .. }]), "{effects:?}");
    assert!(run.take_effects().is_empty());
    run.handle_answer(RequestId(0), answer(vec![call("one"), call("two")])).unwrap();
    let effects = run.take_effects();
    let called: Vec<_> = effects.iter().map(|effect| (effect.request(), effect)).collect();
    assert!(matches!(&called[..], [(Some(RequestId(1)), _), (Some(RequestId(2)), _)]), "{called:?}");
    run.handle_tool(RequestId(2), outcome("two")).unwrap();
    assert!(run.take_effects().is_empty());
    run.handle_tool(RequestId(1), outcome("one")).unwrap();
    let effects = run.take_effects();
    let Effect::CallModel { model_request, .. } = &effects[0] else { panic!("{effects:?}") };
    let parts: Vec<_> = model_request.messages.iter().flat_map(|message| &message.parts).collect();
    let result =
        |id| Part::ToolResult(threadkeep_core::ToolResult { call_id: id, output: String::new(), is_error: false });
    let without_output = |part: &Part| match part {
        Part::ToolResult(tool_result) => result(tool_result.call_id.clone()),
        other => other.clone(),
    };
    let parts: Vec<Part> = parts.into_iter().map(without_output).collect();
    assert_eq!(parts, [call("one"), call("two"), result("one".to_owned()), result("two".to_owned())]);
    run.handle_answer(RequestId(3), answer(vec![text("two things")])).unwrap();
    let end = run.take_effects();
    assert_eq!(end, [Effect::Finish(Ok(Output::reply("4 messages")))]);
    assert!(run.take_effects().is_empty());
    assert_eq!(run.messages().len(), 4);
}

#[test]
fn a_run_fails_after_max_steps() {
    let graph = agent_and_tools();
    let mut run = graph.start(&Input::default()).unwrap();
    for _ in 0..5 {
        match run.take_effects().pop() {
            Some(Effect::CallModel { request, .. }) => run.handle_answer(request, answer(vec![call("again")])).unwrap(),
            Some(Effect::CallTool { request, .. }) => run.handle_tool(request, outcome("again")).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(run.failure().map(|failure| failure.code.as_str()), Some("too_many_steps"));
    assert_eq!(run.messages().len(), 5);
}

#[test]
fn unexpected_outcomes_are_rejected_without_effect() {
    let mut run = agent_and_tools().start(&Input::default()).unwrap();
    let unknown = RequestId(7);
    assert_eq!(run.handle_tool(unknown, outcome("x")), Err(GraphError::NotOutstanding { request: unknown }));
    let wrong = GraphError::UnexpectedOutcome {
        request: RequestId(0),
        expected: OutcomeKind::Answer,
        actual: OutcomeKind::Tool,
    };
    assert_eq!(run.handle_tool(RequestId(0), outcome("x")), Err(wrong));
    run.handle_answer(RequestId(0), answer(vec![text("done")])).unwrap();
    let twice = run.handle_answer(RequestId(0), answer(vec![text("again")]));
    assert_eq!(twice, Err(GraphError::NotOutstanding { request: RequestId(0) }));
    assert_eq!(run.take_effects(), [Effect::Finish(Ok(Output::reply("1 messages")))]);
}

#[test]
fn a_failure_ends_the_run_unless_the_node_recovers() {
    let broken = || Failure::new("model_unavailable", "gone");
    let mut run = agent_and_tools().start(&Input::default()).unwrap();
    run.handle_failure(RequestId(0), broken()).unwrap();
    assert_eq!(run.take_effects(), [Effect::Finish(Err(broken()))]);
    let recovering = Graph::<Chat>::builder("careful", 1, |_| Chat::default())
        .node(
            "agent",
            Node::model(|_| ModelRequest::default(), |_, _| ChatUpdate::default())
                .or_else(|_, failure| ChatUpdate { notes: Some(failure.code.clone()), ..ChatUpdate::default() }),
        )
        .edge(START, "agent")
        .edge("agent", END)
        .finish(|state: &Chat| Output::reply(state.notes.clone()))
        .unwrap();
    let mut run = recovering.start(&Input::default()).unwrap();
    run.handle_failure(RequestId(0), broken()).unwrap();
    assert_eq!(run.take_effects(), [Effect::Finish(Ok(Output::reply("model_unavailable")))]);
}

#[test]
fn a_stop_ends_a_run_with_outstanding_requests() {
    let mut run = agent_and_tools().start(&Input::default()).unwrap();
    run.handle_event(Event::Stopped { failure: Failure::new("stopped", "by the user") }).unwrap();
    assert_eq!(run.outstanding().count(), 0);
    assert!(matches!(&run.take_effects()[..], [Effect::Finish(Err(failure))] if failure.code == "stopped"));
    run.handle_stop(Failure::new("stopped", "twice"));
    assert!(run.take_effects().is_empty());
}

#[test]
fn a_run_waits_for_approval_across_a_replay() {
    let graph = Graph::<Chat>::builder("ask", 1, |_| Chat::default())
        .node(
            "confirm",
            Node::approval(
                |_| "shall I?".to_owned(),
                |_| JsonText::of("plan"),
                |_, decision| ChatUpdate { notes: Some(format!("{:?}", decision.reason)), ..ChatUpdate::default() },
            ),
        )
        .edge(START, "confirm")
        .edge("confirm", END)
        .finish(|state: &Chat| Output::reply(state.notes.clone()))
        .unwrap();
    let mut run = graph.start(&Input::default()).unwrap();
    assert!(matches!(&run.take_effects()[..], [Effect::RequestApproval { question, .. }] if question == "shall I?"));
    let mut replayed = graph.replay(&Input::default(), &Journal::new("ask", 1)).unwrap();
    let decision = Decision { approved: false, by: None, reason: Some("no".to_owned()), changed: None };
    replayed.handle_decision(RequestId(0), decision).unwrap();
    assert_eq!(replayed.output().map(|output| output.reply.as_str()), Some("Some(\"no\")"));
}

#[test]
fn a_journal_of_another_graph_or_version_is_rejected() {
    let graph = agent_and_tools();
    let replay = |journal: Journal| graph.replay(&Input::default(), &journal).map(|_| ());
    let other = GraphError::GraphMismatch { graph: "react".to_owned(), journal_graph: "pes".to_owned() };
    assert_eq!(replay(Journal::new("pes", 3)), Err(other));
    let later = GraphError::UnknownVersion { graph: "react".to_owned(), journal_version: 4, version: 3 };
    assert_eq!(replay(Journal::new("react", 4)), Err(later));
    let event = Event::Finished { request: RequestId(1), outcome: Outcome::Tool(outcome("x")) };
    let diverged = Journal { events: vec![event], ..Journal::new("react", 3) };
    assert_eq!(replay(diverged), Err(GraphError::NotOutstanding { request: RequestId(1) }));
}

#[test]
fn an_invalid_graph_is_rejected() {
    let node = || Node::pure(|_: &Chat| ChatUpdate::default());
    let begin = || Graph::<Chat>::builder("loose", 1, |_| Chat::default());
    let cases = [
        (begin().edge(START, END).node("a", node()).edge("a", END), "node a is not reachable from START"),
        (begin().node("a", node()).edge(START, "a"), "node a has no outgoing edge"),
        (begin().node("a", node()).edge("a", END), "START has no outgoing edge"),
        (begin().node("a", node()).edge(START, "b"), "an edge leads to unknown node b"),
        (begin().node("a", node()).edge(START, "a").edge("b", END), "an edge starts at unknown node b"),
        (begin().node("a", node()).node("a", node()), "the node name a is reserved or already used"),
        (begin().node("END", node()), "the node name END is reserved or already used"),
        (
            begin().node("a", node()).edge(START, "a").edge("a", END).max_steps(0),
            "max_steps is 0; allow at least 1 step",
        ),
    ];
    for (builder, expected) in cases {
        let error = builder.finish(|_| Output::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("graph loose: {expected}"));
    }
}

#[test]
fn a_graph_renders_as_mermaid() {
    insta::assert_snapshot!(agent_and_tools().mermaid(), @r"
    flowchart TD
        START([START])
        agent{{agent}}
        tools[[tools]]
        END([END])
        START --> agent
        agent -.-> tools
        agent -.-> END
        tools --> agent
    ");
}
