//! Programs that end between two turns.

use threadkeep::Scope;

use super::world::World;

#[tokio::test]
async fn a_conversation_goes_on_after_a_restart() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("The boat is called Petrel.").await;
    let thread = talk.thread;
    let world = world.restarted().await;
    let talk = world.talk_again("ana", thread);
    assert_eq!(talk.say("What is the boat called?").await, "You said on 3 May 2026: “The boat is called Petrel.” [1]");
    assert_eq!(talk.rows().await.len(), 4);
}

#[tokio::test]
async fn preferences_and_documents_outlive_the_program() {
    let world = World::new().await;
    world.talk("ana").await.say("Remember that my tea is green.").await;
    let ana = Scope::user("acme", "ana").unwrap();
    world.document(&ana, "documents", "tea.md", &[("Brewing, line 3", "Brew green tea at 80 degrees.")]).await;
    let world = world.restarted().await;
    let answer = world.talk("ana").await.say("How do I brew my green tea?").await;
    assert!(answer.contains("tea.md, Brewing, line 3: “Brew green tea at 80 degrees.”"), "{answer}");
    assert_eq!(world.talk("ana").await.preferences().await.len(), 1);
}

#[tokio::test]
async fn a_turn_is_found_again_after_a_restart() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("The boat is called Petrel.").await;
    let turn = talk.turn("What is the boat called?").await;
    let (thread, scope) = (talk.thread, talk.scope.clone());
    let world = world.restarted().await;
    let found = world.agent.find_turn(&scope, thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!((found.reply, found.sources, found.stored), (turn.reply, turn.sources, turn.stored));
    let report = world.memory().context_report(&scope, thread, &turn.turn).await.unwrap().unwrap();
    assert_eq!(report.messages.len(), 2, "what was said before the question: {report:?}");
}

#[tokio::test]
async fn the_same_request_after_a_restart_is_the_same_turn() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let ask = || threadkeep::Ask { idempotency_key: Some("k1".to_owned()), ..threadkeep::Ask::new("Note: milk.") };
    let first = world.agent.chat_with(&talk.scope, talk.thread, ask(), &mut |_| {}).await.unwrap();
    let (thread, scope) = (talk.thread, talk.scope.clone());
    let world = world.restarted().await;
    let second = world.agent.chat_with(&scope, thread, ask(), &mut |_| {}).await.unwrap();
    assert_eq!((first.turn, first.reply), (second.turn, second.reply));
    assert_eq!(world.talk_again("ana", thread).rows().await, ["user: Note: milk.", "assistant: I keep that in mind."]);
}
