//! Several users.

use threadkeep::Scope;

use super::world::World;

#[tokio::test]
async fn one_user_never_hears_what_another_said() {
    let world = World::new().await;
    world.talk("ana").await.say("The safe's code is 4711.").await;
    for scope in [Scope::user("acme", "ben").unwrap(), Scope::user("other", "ana").unwrap()] {
        let turn = world.talk_in(scope).await.turn("What is the safe's code?").await;
        assert!(turn.reply.starts_with("I find nothing") && turn.sources.is_empty(), "{}", turn.reply);
    }
}

#[tokio::test]
async fn conversations_of_two_users_do_not_mix_when_they_take_turns() {
    let world = World::new().await;
    let (ana, ben) = (world.talk("ana").await, world.talk("ben").await);
    ana.say("My train leaves at eight.").await;
    ben.say("My train leaves at noon.").await;
    let (one, other) = tokio::join!(ana.say("When does my train leave?"), ben.say("When does my train leave?"));
    assert_eq!(one, "You said on 3 May 2026: “My train leaves at eight.” [1]");
    assert_eq!(other, "You said on 3 May 2026: “My train leaves at noon.” [1]");
    assert_eq!((ana.rows().await.len(), ben.rows().await.len()), (4, 4));
}

#[tokio::test]
async fn a_shared_thread_names_who_said_it() {
    let world = World::new().await;
    let tenant = Scope::tenant("acme").unwrap();
    let shared = world.talk_in(tenant).await;
    world.talk_again("ana", shared.thread).say("The rehearsal is in the old hall.").await;
    let answer = shared.say("Where is the rehearsal?").await;
    assert_eq!(answer, "ana said on 3 May 2026: “The rehearsal is in the old hall.” [1]");
}

#[tokio::test]
async fn another_users_thread_cannot_be_spoken_in() {
    let world = World::new().await;
    let ana = world.talk("ana").await;
    ana.say("Mine.").await;
    let ben = Scope::user("acme", "ben").unwrap();
    let error = world.agent.chat(&ben, ana.thread, "Yours?").await.unwrap_err();
    assert_eq!(error.code(), "not_found");
    assert_eq!(ana.rows().await.len(), 2);
}
