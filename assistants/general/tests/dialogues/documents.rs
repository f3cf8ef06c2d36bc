//! Answers from documents.

use threadkeep::Scope;

use super::test_env::{TestEnv, calls, sources};
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
async fn a_document_is_quoted_with_its_location() {
    let env = TestEnv::new().await;
    env.add_document(&ana(), "documents", "library.md", HOURS).await;
    let turn = env.conversation("ana").await.turn("Is it open on Sundays?").await;
    assert_eq!(turn.reply, "library.md, Opening hours > Sundays, line 8: “Closed on Sundays, except in December.” [1]");
    assert_eq!(sources(&turn), ["library.md, Opening hours > Sundays, line 8"]);
    assert_eq!((turn.sources[0].kind.as_str(), turn.sources[0].id.as_str()), ("document", "library.md#1"));
}

#[tokio::test]
async fn only_the_matching_paragraph_is_quoted() {
    let env = TestEnv::new().await;
    env.add_document(&ana(), "documents", "library.md", HOURS).await;
    let answer = env.conversation("ana").await.say("When does the café open?").await;
    assert!(answer.contains("“The café opens at ten.”") && !answer.contains("nine to seven"), "{answer}");
}

#[tokio::test]
async fn a_question_without_a_matching_document_is_not_answered() {
    let env = TestEnv::new().await;
    env.add_document(&ana(), "documents", "library.md", HOURS).await;
    let turn = env.conversation("ana").await.turn("How much is a parking ticket?").await;
    assert!(turn.reply.starts_with("I found nothing about that"), "{}", turn.reply);
    assert!(turn.sources.is_empty());
}

#[tokio::test]
async fn documents_and_messages_are_quoted_together() {
    let env = TestEnv::new().await;
    env.add_document(
        &ana(),
        "documents",
        "boiler.md",
        &[("Reset, line 2", "Hold the boiler's red button to reset it.")],
    )
    .await;
    let conversation = env.conversation("ana").await;
    conversation.say("The boiler's reset button is behind the panel.").await;
    let turn = conversation.turn("How do I reset the boiler?").await;
    assert!(turn.reply.contains("boiler.md, Reset, line 2:") && turn.reply.contains("You said on"), "{}", turn.reply);
    let kinds: Vec<&str> = turn.sources.iter().map(|source| source.kind.as_str()).collect();
    assert_eq!(kinds, ["document", "message"]);
}

#[tokio::test]
async fn a_removed_document_is_not_quoted() {
    let env = TestEnv::new().await;
    env.add_document(&ana(), "documents", "library.md", HOURS).await;
    let conversation = env.conversation("ana").await;
    assert!(conversation.say("Is it open on Sundays?").await.contains("December"));
    assert!(env.memory().remove_library_document(&ana(), "documents", "library.md").await.unwrap());
    let answer = env.conversation("ana").await.say("Is it open on Sundays?").await;
    assert!(answer.starts_with("I found nothing about that"), "{answer}");
}

#[tokio::test]
async fn a_tenants_documents_are_visible_only_to_its_users() {
    let env = TestEnv::new().await;
    let tenant = Scope::tenant("acme").unwrap();
    env.add_document(&tenant, "documents", "library.md", HOURS).await;
    for user in ["ana", "ben"] {
        assert!(env.conversation(user).await.say("Is it open on Sundays?").await.contains("December"), "{user}");
    }
    let other_tenant = env.conversation_in(Scope::user("other", "ana").unwrap()).await;
    assert!(other_tenant.say("Is it open on Sundays?").await.starts_with("I found nothing"));
}

#[tokio::test]
async fn documents_are_listed() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let turn = conversation.turn("Which documents do you have?").await;
    assert_eq!(calls(&turn), ["list_documents{}"]);
    assert_eq!(turn.reply, "I have no documents. To add one, run `threadkeep docs add FILE`.");
    env.add_document(&ana(), "documents", "library.md", HOURS).await;
    assert_eq!(conversation.say("Which documents do you have?").await, "I have these documents:\n- library.md");
}

// S1.34
#[tokio::test]
async fn several_libraries_are_searched_together() {
    let libraries = vec!["laws".to_owned(), "notes".to_owned()];
    let env = TestEnv::with(GeneralOptions { libraries, ..GeneralOptions::default() }).await;
    env.add_document(&ana(), "laws", "code.html", &[("Article 5, line 1", "Pets are allowed in flats.")]).await;
    env.add_document(&ana(), "notes", "lease.txt", &[("lines 1-2", "The lease allows pets up to ten kilograms.")])
        .await;
    env.add_document(&ana(), "elsewhere", "x.txt", &[("line 1", "Pets are forbidden in flats.")]).await;
    let turn = env.conversation("ana").await.turn("Are pets allowed?").await;
    assert!(turn.reply.contains("code.html") && turn.reply.contains("lease.txt"), "{}", turn.reply);
    assert!(!turn.reply.contains("forbidden"), "{}", turn.reply);
}
