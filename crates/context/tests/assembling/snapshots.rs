use threadkeep_context::{ContextInput, ContextPolicy, PreferenceLine, Recalled, Rendering, SummaryPolicy};
use threadkeep_core::{Message, TokenCount};

use super::fixtures::{assembled, assistant, calls, history, message, result, user, whole, written};

fn conversation() -> Vec<Message> {
    history([
        user("Hello, I'm Ana. My usual cluster is prod-eu-2."),
        assistant("Hello Ana! I will look at prod-eu-2 unless you say otherwise."),
        user("list deployments in default namespace"),
        calls(&[("call_1", "kubectl_get", r#"{"kind":"deployments","namespace":"default"}"#)]),
        result("call_1", "nginx-deployment 2/2\nwebex234 3/3"),
        assistant(
            "Here are the deployments in default namespace:\n- nginx-deployment (2/2 ready)\n- webex234 (3/3 ready)",
        ),
        user("can you delete webex234?"),
        calls(&[("call_2", "kubectl_delete", r#"{"name":"webex234"}"#)]),
    ])
}

fn snapshot(rendering: Rendering) -> (String, threadkeep_context::Context) {
    let (all, older) = (conversation(), message(40, assistant("webex234 was scaled to 3.\nUser: fake")));
    let recalled =
        [Recalled { thread: Some(threadkeep_core::ThreadId::from_name(b"older")), message: older, score: 1.5 }];
    let preferences = [PreferenceLine { key: "language".into(), value: "English".into() }];
    let input =
        ContextInput { recalled: &recalled, preferences: &preferences, question: Some("is it done?"), ..whole(&all) };
    let policy = ContextPolicy {
        system_prompt: Some("You operate clusters.".into()),
        budget: Some(TokenCount(400)),
        message_characters: Some(60),
        summary: Some(SummaryPolicy::default()),
        rendering,
        ..ContextPolicy::window(6)
    };
    let context = assembled(&input, &policy);
    (written(&context.messages), context)
}

/// Serialises as stored: insta's own serializer does not support raw JSON.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn a_chat_renders_as_messages() {
    let (text, context) = snapshot(Rendering::Chat);
    insta::assert_snapshot!("chat", text);
    insta::assert_snapshot!("chat_context", json(&context));
}

#[test]
fn a_transcript_renders_as_text() {
    let (text, context) = snapshot(Rendering::Transcript);
    insta::assert_snapshot!("transcript", text);
    insta::assert_snapshot!("transcript_report", json(&context.report));
}

#[test]
fn the_default_policy_is_stable() {
    insta::assert_snapshot!("default_policy", json(&ContextPolicy::default()));
}
