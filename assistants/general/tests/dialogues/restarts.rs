//! Restarts between turns.

use threadkeep::Scope;

use super::test_env::TestEnv;

#[tokio::test]
async fn a_conversation_continues_after_a_restart() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("The boat is called Petrel.").await;
    let thread = conversation.thread;
    let env = env.restarted().await;
    let conversation = env.existing_conversation("ana", thread);
    assert_eq!(
        conversation.say("What is the boat called?").await,
        "You said on 3 May 2026: “The boat is called Petrel.” [1]"
    );
    assert_eq!(conversation.rows().await.len(), 4);
}

#[tokio::test]
async fn preferences_and_documents_survive_a_restart() {
    let env = TestEnv::new().await;
    env.conversation("ana").await.say("Remember that my tea is green.").await;
    let ana = Scope::user("acme", "ana").unwrap();
    env.add_document(&ana, "documents", "tea.md", &[("Brewing, line 3", "Brew green tea at 80 degrees.")]).await;
    let env = env.restarted().await;
    let answer = env.conversation("ana").await.say("How do I brew my green tea?").await;
    assert!(answer.contains("tea.md, Brewing, line 3: “Brew green tea at 80 degrees.”"), "{answer}");
    assert_eq!(env.conversation("ana").await.preferences().await.len(), 1);
}

#[tokio::test]
async fn a_turn_is_found_after_a_restart() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("The boat is called Petrel.").await;
    let turn = conversation.turn("What is the boat called?").await;
    let (thread, scope) = (conversation.thread, conversation.scope.clone());
    let env = env.restarted().await;
    let found = env.agent.find_turn(&scope, thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!((found.reply, found.sources, found.stored), (turn.reply, turn.sources, turn.stored));
    let report = env.memory().context_report(&scope, thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!(report.messages.len(), 2, "the messages before the question: {report:?}");
}

#[tokio::test]
async fn a_repeated_request_after_a_restart_returns_the_same_turn() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let ask = || threadkeep::TurnRequest {
        idempotency_key: Some("k1".to_owned()),
        ..threadkeep::TurnRequest::new("Note: milk.")
    };
    let first = env.agent.chat_with(&conversation.scope, conversation.thread, ask(), &mut |_| {}).await.unwrap();
    let (thread, scope) = (conversation.thread, conversation.scope.clone());
    let env = env.restarted().await;
    let second = env.agent.chat_with(&scope, thread, ask(), &mut |_| {}).await.unwrap();
    assert_eq!((first.turn, first.reply), (second.turn, second.reply));
    assert_eq!(
        env.existing_conversation("ana", thread).rows().await,
        ["user: Note: milk.", "assistant: I will keep that in mind."]
    );
}
