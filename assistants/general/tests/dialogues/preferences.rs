//! Preferences of users.

use super::test_env::{TestEnv, calls};

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[tokio::test]
async fn a_preference_is_stored_for_all_conversations() {
    let env = TestEnv::new().await;
    let turn = env.conversation("ana").await.turn("Remember that my seat is the window.").await;
    assert_eq!(calls(&turn), [r#"set_preference{"name":"seat","value":"the window"}"#]);
    assert_eq!(turn.reply, "I will remember that your seat is the window.");
    let conversation = env.conversation("ana").await;
    assert_eq!(conversation.preferences().await, [pair("seat", "the window")]);
    assert_eq!(conversation.say("What are my preferences?").await, "Your preferences:\n- seat: the window");
}

#[tokio::test]
async fn a_preference_answers_a_question() {
    let env = TestEnv::new().await;
    env.conversation("ana").await.say("Set my favourite colour to dark green").await;
    let answer = env.conversation("ana").await.say("What is my favourite colour?").await;
    assert!(answer.contains("Your favourite colour is dark green."), "{answer}");
}

#[tokio::test]
async fn a_preference_can_be_changed_and_removed() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("Set my language to Spanish").await;
    conversation.say("Set my Language to English").await;
    assert_eq!(conversation.preferences().await, [pair("language", "English")]);
    let turn = conversation.turn("Forget my language").await;
    assert_eq!(calls(&turn)[1], r#"forget_preference{"name":"language"}"#);
    let listed =
        ["Set my language to Spanish", "Set my Language to English"].map(|said| format!("- 3 May 2026: “{said}”\n"));
    let listed = listed.concat();
    let asked = "Shall I erase all of these for good?";
    assert_eq!(turn.reply, format!("I have forgotten your language.\n\nYou said this:\n{listed}{asked}"));
    assert_eq!(conversation.preferences().await, []);
    assert_eq!(conversation.say("yes").await, "I have erased these 2 messages and your request.");
    assert_eq!(conversation.say("What are my preferences?").await, "You have not told me any preferences.");
}

#[tokio::test]
async fn an_unknown_preference_cannot_be_removed() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let turn = conversation.turn("Forget my shoe size").await;
    assert_eq!(calls(&turn), ["list_preferences{}", r#"find_messages{"about":"shoe size"}"#]);
    assert!(turn.reply.ends_with("so there is nothing to erase."), "{}", turn.reply);
}

#[tokio::test]
async fn a_question_about_remembering_sets_nothing() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("Remember that my seat is the window.").await;
    let turn = conversation.turn("Do you remember my seat?").await;
    assert!(calls(&turn).is_empty() && turn.reply.contains("the window"), "{}", turn.reply);
    assert_eq!(conversation.preferences().await.len(), 1);
}

#[tokio::test]
async fn preferences_of_other_users_are_not_visible() {
    let env = TestEnv::new().await;
    env.conversation("ana").await.say("Remember that my seat is the window.").await;
    let ben = env.conversation("ben").await;
    assert_eq!(ben.say("What are my preferences?").await, "You have not told me any preferences.");
    assert!(ben.say("What is my seat?").await.starts_with("I found nothing"));
}
