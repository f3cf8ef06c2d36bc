//! Separation of users.

use threadkeep::Scope;

use super::test_env::TestEnv;

#[tokio::test]
async fn messages_of_other_users_are_not_found() {
    let env = TestEnv::new().await;
    env.conversation("ana").await.say("The safe's code is 4711.").await;
    for scope in [Scope::user("acme", "ben").unwrap(), Scope::user("other", "ana").unwrap()] {
        let turn = env.conversation_in(scope).await.turn("What is the safe's code?").await;
        assert!(turn.reply.starts_with("I found nothing") && turn.sources.is_empty(), "{}", turn.reply);
    }
}

#[tokio::test]
async fn concurrent_conversations_of_two_users_do_not_mix() {
    let env = TestEnv::new().await;
    let (ana, ben) = (env.conversation("ana").await, env.conversation("ben").await);
    ana.say("My train leaves at eight.").await;
    ben.say("My train leaves at noon.").await;
    let (one, other) = tokio::join!(ana.say("When does my train leave?"), ben.say("When does my train leave?"));
    assert_eq!(one, "You said on 3 May 2026: “My train leaves at eight.” [1]");
    assert_eq!(other, "You said on 3 May 2026: “My train leaves at noon.” [1]");
    assert_eq!((ana.rows().await.len(), ben.rows().await.len()), (4, 4));
}

#[tokio::test]
async fn quotations_from_a_shared_thread_name_the_author() {
    let env = TestEnv::new().await;
    let tenant = Scope::tenant("acme").unwrap();
    let shared = env.conversation_in(tenant).await;
    env.existing_conversation("ana", shared.thread).say("The rehearsal is in the old hall.").await;
    let answer = shared.say("Where is the rehearsal?").await;
    assert_eq!(answer, "ana said on 3 May 2026: “The rehearsal is in the old hall.” [1]");
}

#[tokio::test]
async fn another_users_thread_is_not_found() {
    let env = TestEnv::new().await;
    let ana = env.conversation("ana").await;
    ana.say("Mine.").await;
    let ben = Scope::user("acme", "ben").unwrap();
    let error = env.agent.chat(&ben, ana.thread, "Yours?").await.unwrap_err();
    assert_eq!(error.code(), "not_found");
    assert_eq!(ana.rows().await.len(), 2);
}
