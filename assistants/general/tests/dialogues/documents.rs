//! Documents as what an answer stands on.

use threadkeep::Scope;

use super::world::{World, calls, sources};
use threadkeep_general::GeneralOptions;

const HOURS: &[(&str, &str)] = &[
    (
        "Opening hours > Weekdays, lines 3-5",
        "Opening hours > Weekdays\n\nOpen from nine to seven.\n\nThe café opens at ten.",
    ),
    ("Opening hours > Sundays, line 8", "Opening hours > Sundays\n\nClosed on Sundays, except in December."),
];

fn ana() -> Scope {
    Scope::user("acme", "ana").unwrap()
}

// S1.38
#[tokio::test]
async fn a_document_is_quoted_with_its_place() {
    let world = World::new().await;
    world.document(&ana(), "documents", "library.md", HOURS).await;
    let turn = world.talk("ana").await.turn("Is it open on Sundays?").await;
    assert_eq!(turn.reply, "library.md, Opening hours > Sundays, line 8: “Closed on Sundays, except in December.” [1]");
    assert_eq!(sources(&turn), ["library.md, Opening hours > Sundays, line 8"]);
    assert_eq!((turn.sources[0].kind.as_str(), turn.sources[0].id.as_str()), ("document", "library.md#1"));
}

#[tokio::test]
async fn the_paragraph_that_answers_is_quoted_and_not_the_whole_passage() {
    let world = World::new().await;
    world.document(&ana(), "documents", "library.md", HOURS).await;
    let answer = world.talk("ana").await.say("When does the café open?").await;
    assert!(answer.contains("“The café opens at ten.”") && !answer.contains("nine to seven"), "{answer}");
}

#[tokio::test]
async fn what_no_document_says_is_not_known() {
    let world = World::new().await;
    world.document(&ana(), "documents", "library.md", HOURS).await;
    let turn = world.talk("ana").await.turn("How much is a parking ticket?").await;
    assert!(turn.reply.starts_with("I find nothing about that"), "{}", turn.reply);
    assert!(turn.sources.is_empty());
}

#[tokio::test]
async fn documents_and_conversations_answer_together() {
    let world = World::new().await;
    world
        .document(&ana(), "documents", "boiler.md", &[("Reset, line 2", "Hold the boiler's red button to reset it.")])
        .await;
    let talk = world.talk("ana").await;
    talk.say("The boiler's reset button is behind the panel.").await;
    let turn = talk.turn("How do I reset the boiler?").await;
    assert!(turn.reply.contains("boiler.md, Reset, line 2:") && turn.reply.contains("You said on"), "{}", turn.reply);
    let kinds: Vec<&str> = turn.sources.iter().map(|source| source.kind.as_str()).collect();
    assert_eq!(kinds, ["document", "message"]);
}

#[tokio::test]
async fn a_removed_document_is_quoted_no_more() {
    let world = World::new().await;
    world.document(&ana(), "documents", "library.md", HOURS).await;
    let talk = world.talk("ana").await;
    assert!(talk.say("Is it open on Sundays?").await.contains("December"));
    assert!(world.memory().remove_library_document(&ana(), "documents", "library.md").await.unwrap());
    let answer = world.talk("ana").await.say("Is it open on Sundays?").await;
    assert!(answer.starts_with("I find nothing about that"), "{answer}");
}

#[tokio::test]
async fn a_tenants_documents_are_for_all_its_users_and_nobody_else() {
    let world = World::new().await;
    let tenant = Scope::tenant("acme").unwrap();
    world.document(&tenant, "documents", "library.md", HOURS).await;
    for user in ["ana", "ben"] {
        assert!(world.talk(user).await.say("Is it open on Sundays?").await.contains("December"), "{user}");
    }
    let stranger = world.talk_in(Scope::user("other", "ana").unwrap()).await;
    assert!(stranger.say("Is it open on Sundays?").await.starts_with("I find nothing"));
}

#[tokio::test]
async fn documents_are_listed() {
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let turn = talk.turn("Which documents do you have?").await;
    assert_eq!(calls(&turn), ["list_documents{}"]);
    assert_eq!(turn.reply, "I have no documents. `threadkeep docs add FILE` gives me one.");
    world.document(&ana(), "documents", "library.md", HOURS).await;
    assert_eq!(talk.say("Which documents do you have?").await, "I have:\n- library.md");
}

// S1.34
#[tokio::test]
async fn several_libraries_are_looked_into_at_once() {
    let libraries = vec!["laws".to_owned(), "notes".to_owned()];
    let world = World::with(GeneralOptions { libraries, ..GeneralOptions::default() }).await;
    world.document(&ana(), "laws", "code.html", &[("Article 5, line 1", "Pets are allowed in flats.")]).await;
    world.document(&ana(), "notes", "lease.txt", &[("lines 1-2", "The lease allows pets up to ten kilograms.")]).await;
    world.document(&ana(), "elsewhere", "x.txt", &[("line 1", "Pets are forbidden in flats.")]).await;
    let turn = world.talk("ana").await.turn("Are pets allowed?").await;
    assert!(turn.reply.contains("code.html") && turn.reply.contains("lease.txt"), "{}", turn.reply);
    assert!(!turn.reply.contains("forbidden"), "{}", turn.reply);
}
