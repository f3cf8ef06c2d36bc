//! What a user prefers.

use super::world::{World, calls};

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[tokio::test]
async fn a_preference_is_kept_for_all_conversations() {
    let world = World::new().await;
    let turn = world.talk("ana").await.turn("Remember that my seat is the window.").await;
    assert_eq!(calls(&turn), [r#"set_preference{"name":"seat","value":"the window"}"#]);
    assert_eq!(turn.reply, "I remember: your seat is the window.");
    let talk = world.talk("ana").await;
    assert_eq!(talk.preferences().await, [pair("seat", "the window")]);
    assert_eq!(talk.say("What are my preferences?").await, "You prefer:\n- seat: the window");
}

#[tokio::test]
async fn a_preference_answers_a_question() {
    let world = World::new().await;
    world.talk("ana").await.say("Set my favourite colour to dark green").await;
    let answer = world.talk("ana").await.say("What is my favourite colour?").await;
    assert!(answer.contains("Your favourite colour is dark green."), "{answer}");
}

#[tokio::test]
async fn a_preference_is_changed_and_forgotten() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("Set my language to Spanish").await;
    talk.say("Set my Language to English").await;
    assert_eq!(talk.preferences().await, [pair("language", "English")]);
    let turn = talk.turn("Forget my language").await;
    assert_eq!(calls(&turn), [r#"forget_preference{"name":"language"}"#]);
    assert_eq!(turn.reply, "I have forgotten your language.");
    assert_eq!(talk.preferences().await, []);
    assert_eq!(talk.say("What are my preferences?").await, "You have told me no preferences.");
}

#[tokio::test]
async fn what_is_no_preference_cannot_be_forgotten() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let turn = talk.turn("Forget my shoe size").await;
    assert!(!turn.tool_calls[0].ok);
    assert!(turn.reply.starts_with("I keep no such preference."), "{}", turn.reply);
}

#[tokio::test]
async fn a_question_about_remembering_sets_nothing() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    talk.say("Remember that my seat is the window.").await;
    let turn = talk.turn("Do you remember my seat?").await;
    assert!(calls(&turn).is_empty() && turn.reply.contains("the window"), "{}", turn.reply);
    assert_eq!(talk.preferences().await.len(), 1);
}

#[tokio::test]
async fn preferences_of_one_user_are_not_anothers() {
    let world = World::new().await;
    world.talk("ana").await.say("Remember that my seat is the window.").await;
    let ben = world.talk("ben").await;
    assert_eq!(ben.say("What are my preferences?").await, "You have told me no preferences.");
    assert!(ben.say("What is my seat?").await.starts_with("I find nothing"));
}
